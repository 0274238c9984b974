# SPDX-License-Identifier: Apache-2.0
# How our own targets are built: the house's warnings, and a flex/bison pair as a source of a library.
include_guard(GLOBAL)

# An empty format is said on purpose (`more ? ", %u" : ""`); clang alone sees it there.
set(TDSL_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
    -Wmissing-prototypes -Wvla -Wformat=2
    -Wno-format-zero-length -Wundef)

# C11, every warning, and errors out of them when asked; optimised where a project around ours says nothing of it.
function(tdsl_target_flags target)
    set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON
        C_EXTENSIONS OFF)
    tdsl_optimise_by_default(${target})
    if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
        # Messages of internal errors, and what debuggers read, name files from the top of the tree: wherever it is built, the
        # programs are the same bytes.
        target_compile_options(${target} PRIVATE ${TDSL_WARNINGS}
            -ffile-prefix-map=${PROJECT_BINARY_DIR}/=build/ -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
        if(TDSL_WERROR)
            target_compile_options(${target} PRIVATE -Werror)
        endif()
    endif()
endfunction()

# Objects come from ccache where it is installed. Paths count from this tree's top, so that every checkout and
# worktree of this project shares them; -DCMAKE_C_COMPILER_LAUNCHER= turns it off.
function(tdsl_use_ccache)
    find_program(TDSL_CCACHE ccache)
    mark_as_advanced(TDSL_CCACHE)
    if(TDSL_CCACHE AND NOT DEFINED CMAKE_C_COMPILER_LAUNCHER)
        set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
            CCACHE_NOHASHDIR=1 ${TDSL_CCACHE} PARENT_SCOPE)
    endif()
endfunction()

# grammar/NAME.y and grammar/NAME.l become generated/grammar/NAME.{tab,lex}.{c,h}, included as
# "grammar/NAME.tab.h" and "grammar/NAME.lex.h". Sets `out` to the two C files.
function(tdsl_grammar name out)
    find_program(TDSL_BISON bison REQUIRED)
    find_program(TDSL_FLEX flex REQUIRED)
    set(from ${PROJECT_SOURCE_DIR}/grammar)
    set(to ${TDSL_GENERATED_DIR}/grammar)
    file(MAKE_DIRECTORY ${to})
    add_custom_command(
        OUTPUT ${to}/${name}.tab.c ${to}/${name}.tab.h
        COMMAND ${TDSL_BISON} -Wcounterexamples -Werror --header=${to}/${name}.tab.h
                --output=${to}/${name}.tab.c ${name}.y
        WORKING_DIRECTORY ${from}
        DEPENDS ${from}/${name}.y
        COMMENT "bison ${name}.y"
        VERBATIM)
    add_custom_command(
        OUTPUT ${to}/${name}.lex.c ${to}/${name}.lex.h
        COMMAND ${CMAKE_COMMAND} -DFLEX=${TDSL_FLEX} -DFROM=${from} -DNAME=${name} -DTO=${to}
                -P ${PROJECT_SOURCE_DIR}/compiler/cmake/flex.cmake
        DEPENDS ${from}/${name}.l ${PROJECT_SOURCE_DIR}/compiler/cmake/flex.cmake
        COMMENT "flex ${name}.l"
        VERBATIM)
    # With custom errors bison emits a helper that a grammar need not call; nothing else is exempt.
    set_source_files_properties(${to}/${name}.tab.c PROPERTIES COMPILE_OPTIONS -Wno-unused-function)
    set(${out} ${to}/${name}.tab.c ${to}/${name}.lex.c PARENT_SCOPE)
endfunction()
