# SPDX-License-Identifier: Apache-2.0
# tdsl_add_library: TDSL sources as a library of a CMake project.
#
#   tdsl_add_library(NAME SOURCES a.tdsl [b.tdsl ...]
#       [TYPE STATIC|SHARED|OBJECT]     (STATIC unless said)
#       [DEFINES o=16 ...]              dims bound at compile time
#       [INCLUDE_DIRS dir ...]          where `include` looks
#       [TARGETS c trn2 ...]            (c unless said) what to compile for
#       [TARGET_DEFINES m=256 ...]      dims bound for targets other than c alone
#       [PREFIX word_]                  before the names of all kernels, as tdslc --prefix
#       [OPTIONS --report ...]          more options of tdslc
#       [TUNE folder]                   plans of tdslc --tune, folder/a.nest: used where they are, made by target NAME_tune
#       [TUNE_OPTIONS --tune-time=9]    more options of that run
#       [EMIT hpp fortran rust]         also a.hpp, a.f90, a.rs: wrappers for other languages (hpp: beside a.h;
#                                       fortran: library NAME_fortran, where the project enables Fortran)
#       [SHARE]                         print what the C files have in common once, into NAME_tiles.c (tdslc --emit=shared)
#       [OPENMP]                        compile the kernels with OpenMP, for calls on several threads
#       [KERNELS_OUT variable])         the generated C files
#
# For target c the library NAME holds the kernels of all sources; whoever links to it can include "a.h". For every other
# target the files go to ${CMAKE_CURRENT_BINARY_DIR}/NAME.tdsl/a.TARGET/, and target NAME_TARGET makes them. Where c is
# among several, the library also holds the tables of their NKI forms, links Tdsl::runtime, and "NAME_register.h" has
#     tdsl_status NAME_register(tdsl_context *context, tdsl_report *report)
# which registers all kernels in all forms; target NAME_neff, on a host with the Neuron tools, makes the NEFFs that the
# next build puts into the tables. The compiler is target Tdsl::tdslc, or the program TDSLC_EXECUTABLE.
#
# Kernels are compiled with -O2 where nobody says how: no build type, no -O in CMAKE_C_FLAGS, none in the options of
# the folder or of NAME, which come later on the command line and win.
#
# What is fast depends on the machine, so no build tunes by itself: NAME_tune does when it is asked for, with this project's C
# compiler, and leaves its plans in the source tree to be kept with the sources. The next build takes them. A plan that is not of its
# source fails the build.
#
# How rebuilding works: the command's OUTPUT is a stamp, the .c and .h are BYPRODUCTS, and tdslc rewrites them only
# when their bytes change. So a touched file costs one run of tdslc and no compilation, and the next
# build nothing, on Ninja and on Makefiles. The dependency file names every included source.
include_guard(GLOBAL)
cmake_policy(PUSH)
cmake_policy(VERSION 3.23) # functions keep the policies of the place where they are defined

set(TDSL_LIBRARY_MODULE_DIR ${CMAKE_CURRENT_LIST_DIR} CACHE INTERNAL "Where TdslLibrary.cmake is")

# -O2 before the target's other options, unless there is a build type or CMAKE_C_FLAGS speaks of optimisation.
function(tdsl_optimise_by_default target)
    if(CMAKE_BUILD_TYPE OR CMAKE_CONFIGURATION_TYPES OR CMAKE_C_FLAGS MATCHES "(^| )-O"
       OR NOT CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
        return()
    endif()
    get_target_property(options ${target} COMPILE_OPTIONS)
    if(NOT options)
        set(options "")
    endif()
    set_target_properties(${target} PROPERTIES COMPILE_OPTIONS "-O2;${options}")
endfunction()

# One run of tdslc: source (all of them, for what they share), its stem, the target, the product (.c file or folder), byproducts as the rest.
function(_tdsl_command source stem target product stamp_out)
    set(stamp ${dir}/${stem}.${target}.stamp)
    set(written ${dir}/${stem}.${target}.d)
    set(depfile ${dir}/${stem}.${target}.deps)
    set(options "")
    set(defines ${arg_DEFINES})
    if(NOT target STREQUAL "c")
        list(APPEND defines ${arg_TARGET_DEFINES})
    endif()
    foreach(define IN LISTS defines)
        list(APPEND options -D ${define})
    endforeach()
    foreach(folder IN LISTS arg_INCLUDE_DIRS)
        cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
        list(APPEND options -I ${folder})
    endforeach()
    if(TDSLC_EXECUTABLE)
        set(tool ${TDSLC_EXECUTABLE})
    else()
        set(tool Tdsl::tdslc)
    endif()
    set(prefix "")
    if(arg_PREFIX)
        set(prefix --prefix=${arg_PREFIX})
    endif()
    set(plan "")
    if(NOT target STREQUAL "c")
        list(APPEND options --target=${target})
    elseif(arg_TUNE)
        cmake_path(ABSOLUTE_PATH arg_TUNE BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE plans)
        set(tuning ${tuning}
            COMMAND ${CMAKE_COMMAND} -E make_directory ${plans}
            COMMAND ${tool} ${source} ${options} --tune -o ${plans}/${stem}.nest --cc=${CMAKE_C_COMPILER} ${arg_TUNE_OPTIONS})
        set(tuning ${tuning} PARENT_SCOPE)
        file(GLOB plan CONFIGURE_DEPENDS ${plans}/${stem}.nest)
        if(plan)
            list(APPEND options --nest=${plan})
        endif()
    endif()
    if(target STREQUAL "c")
        list(FILTER arg_OPTIONS EXCLUDE REGEX "^--lnc=") # of device programs
        list(APPEND options --header=${dir}/${stem}.h)
    endif()
    set(wrappers "")
    if(target STREQUAL "c" AND stem STREQUAL "${name}_tiles")
        list(FILTER arg_OPTIONS EXCLUDE REGEX "^--(report|emit)") # of one program
        list(APPEND options --emit=shared)
    elseif(target STREQUAL "c")
        if(arg_SHARE)
            list(APPEND options --shared=${name}_tiles.h)
        endif()
        foreach(kind IN LISTS arg_EMIT)
            list(APPEND wrappers COMMAND ${tool} ${source} --emit=${kind} -o ${dir}/${stem}.${_tdsl_suffix_${kind}}
                ${options} ${prefix} -w ${arg_OPTIONS})
        endforeach()
    endif()
    # The tool names its own product in the dependency file; make needs the name of the stamp there.
    add_custom_command(
        OUTPUT ${stamp}
        BYPRODUCTS ${ARGN}
        COMMAND ${tool} ${source} -o ${product} ${options} ${prefix} -MD -MF ${written} ${arg_OPTIONS}
        ${wrappers}
        COMMAND ${CMAKE_COMMAND} -DFROM=${written} -DTO=${depfile} -DSTAMP=${stamp}
                -P ${TDSL_LIBRARY_MODULE_DIR}/TdslDepfile.cmake
        DEPENDS ${source} ${tool} ${plan}
        DEPFILE ${depfile}
        COMMENT "tdslc ${stem}.tdsl (${target})"
        VERBATIM)
    set(${stamp_out} ${stamp} PARENT_SCOPE)
endfunction()

# The identifier that tdslc makes of a file's name, up to its first dot.
function(_tdsl_word stem word_out)
    string(REGEX REPLACE "\\..*" "" word "${stem}")
    string(REGEX REPLACE "[^A-Za-z0-9]" "_" word "${word}")
    if(NOT word MATCHES "^[A-Za-z]")
        set(word "m${word}")
    endif()
    set(${word_out} ${word} PARENT_SCOPE)
endfunction()

# NAME_register.h: one call for all kernels (headers, lists) and their NKI forms (tables).
function(_tdsl_register_header name)
    string(MAKE_C_IDENTIFIER ${name} word)
    string(TOUPPER ${word} guard)
    set(includes "")
    set(declarations "")
    set(calls "")
    foreach(stem IN LISTS stems)
        _tdsl_word(${stem} list)
        string(APPEND includes "#include \"${stem}.h\"\n")
        string(APPEND calls "    if (status == TDSL_OK) {\n        status = tdsl_register_all(context, ${arg_PREFIX}${list}_kernels, report);\n    }\n")
    endforeach()
    foreach(list IN LISTS tables)
        string(APPEND declarations "extern const tdsl_nki_form *const ${arg_PREFIX}${list}_forms[];\n")
        string(APPEND calls "    if (status == TDSL_OK) {\n        status = tdsl_register_nki_all(context, ${arg_PREFIX}${list}_forms, NULL, report);\n    }\n")
    endforeach()
    file(CONFIGURE OUTPUT ${dir}/${name}_register.h @ONLY CONTENT [[/* Written by tdsl_add_library: registers the kernels of @name@ in all their forms.
 * Its terms of use are yours: TDSL's licence asks nothing of generated files. */
#ifndef @guard@_REGISTER_H
#define @guard@_REGISTER_H

#include <tdsl/tdsl.h>

@includes@
TDSL_BEGIN
@declarations@
static inline tdsl_status @word@_register(tdsl_context *context, tdsl_report *report)
{
    tdsl_status status = TDSL_OK;
@calls@    return status;
}

TDSL_END

#endif
]])
endfunction()

# The NKI forms of the sources in library NAME; stamps of one target, tables of all.
function(_tdsl_nki_tables name)
    set(folders "")
    foreach(stem IN LISTS stems)
        _tdsl_word(${stem} word)
        set(table ${dir}/${stem}.${target}/${word}_${target}.c)
        set_source_files_properties(${table} PROPERTIES GENERATED ON SKIP_LINTING ON
            COMPILE_DEFINITIONS "TDSL_NKI_FOLDER=\"${dir}/${stem}.${target}/\"")
        target_sources(${name} PRIVATE ${table})
        list(APPEND neff_commands COMMAND ${TDSL_PYTHON} ${dir}/${stem}.${target}/build_neff.py)
    endforeach()
    add_dependencies(${name} ${name}_${target})
    set(neff_commands ${neff_commands} PARENT_SCOPE)
endfunction()

# install(TARGETS NAME) brings the headers, as the file set HEADERS where it is named too: `install(TARGETS NAME EXPORT app
# FILE_SET HEADERS)` also says where programs of other projects find them.
function(_tdsl_public_headers name)
    set(headers ${files})
    list(FILTER headers INCLUDE REGEX "\\.(h|hpp)$")
    target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${dir} FILES ${headers})
    set_target_properties(${name} PROPERTIES PUBLIC_HEADER "${headers}")
endfunction()

# The modules of EMIT fortran, where the project has the language; their .mod files lie beside them.
function(_tdsl_fortran_library name)
    if(NOT CMAKE_Fortran_COMPILER_LOADED)
        message(FATAL_ERROR "tdsl_add_library(${name}): EMIT fortran needs the language: project(... Fortran)")
    endif()
    add_library(${name}_fortran STATIC ${modules})
    add_dependencies(${name}_fortran ${name}_c)
    set_target_properties(${name}_fortran PROPERTIES Fortran_MODULE_DIRECTORY ${dir} POSITION_INDEPENDENT_CODE ON)
    target_include_directories(${name}_fortran PUBLIC $<BUILD_INTERFACE:${dir}>)
    target_link_libraries(${name}_fortran PUBLIC ${name})
endfunction()

# OpenMP for the kernels, or what to do where there is none.
function(_tdsl_use_openmp name)
    find_package(OpenMP QUIET COMPONENTS C)
    if(NOT TARGET OpenMP::OpenMP_C)
        message(FATAL_ERROR "tdsl_add_library(${name}): ${CMAKE_C_COMPILER} compiles no OpenMP (clang on Debian: package "
            "libomp-dev). Without OPENMP kernels compute in the caller's thread, or in those of a pool of yours")
    endif()
    target_link_libraries(${name} PRIVATE OpenMP::OpenMP_C)
endfunction()

# A macro, since a language that a function enables is lost when it returns.
macro(tdsl_add_library name)
    if(NOT CMAKE_C_COMPILER_LOADED)
        if(DEFINED CMAKE_CURRENT_FUNCTION)
            message(FATAL_ERROR "tdsl_add_library(${name}): kernels are C, which a function such as ${CMAKE_CURRENT_FUNCTION} "
                "cannot enable: project(... C CXX), or enable_language(C) before")
        endif()
        enable_language(C)
    endif()
    _tdsl_add_library(${name} ${ARGN})
endmacro()

function(_tdsl_add_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "OPENMP;SHARE" "TYPE;KERNELS_OUT;TUNE;PREFIX"
        "SOURCES;TUNE_OPTIONS;DEFINES;TARGET_DEFINES;INCLUDE_DIRS;TARGETS;OPTIONS;EMIT")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "tdsl_add_library(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT arg_SOURCES)
        message(FATAL_ERROR "tdsl_add_library(${name}): SOURCES is missing")
    endif()
    if(NOT arg_TYPE)
        set(arg_TYPE STATIC)
    endif()
    if(NOT arg_TYPE MATCHES "^(STATIC|SHARED|OBJECT)$")
        message(FATAL_ERROR "tdsl_add_library(${name}): TYPE is '${arg_TYPE}', not STATIC, SHARED or OBJECT")
    endif()
    if(arg_SHARE AND arg_TUNE)
        message(FATAL_ERROR "tdsl_add_library(${name}): SHARE compiles all sources in one run, which takes no plan of each (TUNE)")
    endif()
    if(NOT arg_TARGETS)
        set(arg_TARGETS c)
    endif()
    set(dir ${CMAKE_CURRENT_BINARY_DIR}/${name}.tdsl)
    file(MAKE_DIRECTORY ${dir})
    set(tables "")
    set(neff_commands "")
    set(tuning "")
    set(neff_needs "")
    set(TDSL_PYTHON python3 CACHE STRING "The Python that runs build_neff.py for tdsl_add_library")
    set(_tdsl_suffix_hpp hpp)
    set(_tdsl_suffix_fortran f90)
    set(_tdsl_suffix_rust rs)
    foreach(kind IN LISTS arg_EMIT)
        if(NOT DEFINED _tdsl_suffix_${kind} OR NOT "c" IN_LIST arg_TARGETS)
            message(FATAL_ERROR "tdsl_add_library(${name}): EMIT is '${kind}'; it takes hpp, fortran and rust, for target c")
        endif()
    endforeach()
    if("c" IN_LIST arg_TARGETS) # first, as the others' tables become part of its library
        list(REMOVE_ITEM arg_TARGETS c)
        list(PREPEND arg_TARGETS c)
    endif()

    foreach(target IN LISTS arg_TARGETS)
        set(stamps "")
        set(files "")
        set(stems "")
        set(sources "")
        foreach(source IN LISTS arg_SOURCES)
            cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
            cmake_path(GET source STEM LAST_ONLY stem)
            if(stem IN_LIST stems)
                message(FATAL_ERROR "tdsl_add_library(${name}): two sources are called ${stem}")
            endif()
            list(APPEND stems ${stem})
            list(APPEND sources ${source})
            if(target STREQUAL "c")
                set(more "")
                foreach(kind IN LISTS arg_EMIT)
                    list(APPEND more ${dir}/${stem}.${_tdsl_suffix_${kind}})
                endforeach()
                _tdsl_command(${source} ${stem} c ${dir}/${stem}.c stamp ${dir}/${stem}.c ${dir}/${stem}.h ${more})
                list(APPEND files ${dir}/${stem}.c ${dir}/${stem}.h ${more})
            else()
                _tdsl_word(${stem} word)
                set(table "")
                if(target MATCHES "^trn")
                    list(APPEND tables ${word}_${target})
                    set(table ${dir}/${stem}.${target}/${word}_${target}.c)
                endif()
                _tdsl_command(${source} ${stem} ${target} ${dir}/${stem}.${target} stamp ${table})
            endif()
            list(APPEND stamps ${stamp})
        endforeach()
        set(shared "")
        if(target STREQUAL "c" AND arg_SHARE)
            set(shared ${dir}/${name}_tiles.c ${dir}/${name}_tiles.h)
            _tdsl_command("${sources}" ${name}_tiles c ${dir}/${name}_tiles.c stamp ${shared})
            list(APPEND stamps ${stamp})
        endif()
        add_custom_target(${name}_${target} ALL DEPENDS ${stamps})
        if(target STREQUAL "c" AND arg_TUNE)
            add_custom_target(${name}_tune ${tuning} USES_TERMINAL VERBATIM)
        endif()
        if(target STREQUAL "c")
            set_source_files_properties(${files} ${shared} PROPERTIES GENERATED ON SKIP_LINTING ON)
            set(modules ${files})
            list(FILTER modules INCLUDE REGEX "\\.f90$")
            list(FILTER files EXCLUDE REGEX "\\.(f90|rs)$")
            add_library(${name} ${arg_TYPE} ${files} ${shared})
            add_dependencies(${name} ${name}_c)
            if(modules)
                _tdsl_fortran_library(${name})
            endif()
            target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${dir}>)
            _tdsl_public_headers(${name})
            target_compile_features(${name} PRIVATE c_std_11)
            # Programs of this project that use the wrappers are C++17. A program elsewhere may be C alone, for which the
            # feature of C++ would be an error; there the wrappers say it themselves.
            if("hpp" IN_LIST arg_EMIT AND CMAKE_CXX_COMPILER_LOADED)
                target_compile_features(${name} INTERFACE $<BUILD_INTERFACE:cxx_std_17>)
            endif()
            set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE C)
            # At the end of the folder, when its flags are final.
            cmake_language(EVAL CODE "cmake_language(DEFER CALL tdsl_optimise_by_default [[${name}]])")
            if(UNIX)
                target_link_libraries(${name} PUBLIC m)
            endif()
            if(arg_OPENMP)
                _tdsl_use_openmp(${name})
            endif()
            if(arg_KERNELS_OUT)
                set(${arg_KERNELS_OUT} ${files} ${shared} PARENT_SCOPE)
            endif()
        elseif(target MATCHES "^trn" AND "c" IN_LIST arg_TARGETS)
            _tdsl_nki_tables(${name})
            list(APPEND neff_needs ${name}_${target})
        endif()
    endforeach()
    if("c" IN_LIST arg_TARGETS)
        _tdsl_register_header(${name})
    endif()
    if(neff_needs)
        if(NOT TARGET Tdsl::runtime)
            message(FATAL_ERROR "tdsl_add_library(${name}): TARGETS ${arg_TARGETS} need libtdsl, and the package's is for another "
                "machine than this project's; add_subdirectory(.../runtime) of TDSL's sources builds it")
        endif()
        target_link_libraries(${name} PUBLIC Tdsl::runtime)
        add_custom_target(${name}_neff ${neff_commands} VERBATIM)
        add_dependencies(${name}_neff ${neff_needs})
    endif()
endfunction()
cmake_policy(POP)
