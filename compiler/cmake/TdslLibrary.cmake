# SPDX-License-Identifier: Apache-2.0
# tdsl_add_library: TDSL sources as a library of a CMake project.
#
#   tdsl_add_library(NAME SOURCES a.tdsl [b.tdsl ...]
#       [TYPE STATIC|SHARED|OBJECT]     (STATIC unless said)
#       [DEFINES o=16 ...]              dims bound at compile time
#       [INCLUDE_DIRS dir ...]          where `include` looks
#       [TARGETS c trn2 ...]            (c unless said) what to compile for
#       [OPTIONS --report ...]          more options of tdslc
#       [KERNELS_OUT variable])         the generated C files
#
# For target c the library NAME holds the kernels of all sources; whoever links to it can include "a.h". For every other
# target the files go to ${CMAKE_CURRENT_BINARY_DIR}/NAME.tdsl/a.TARGET/, and target NAME_TARGET makes them. The
# compiler is target Tdsl::tdslc, or the program TDSLC_EXECUTABLE (when cross-compiling, for instance).
#
# How rebuilding works: the command's OUTPUT is a stamp, the .c and .h are BYPRODUCTS, and tdslc rewrites them only
# when their bytes change. So a touched file costs one run of tdslc and no compilation, and the next
# build nothing, on Ninja and on Makefiles. The dependency file names every included source.
include_guard(GLOBAL)
cmake_policy(PUSH)
cmake_policy(VERSION 3.23) # functions keep the policies of the place where they are defined

set(TDSL_LIBRARY_MODULE_DIR ${CMAKE_CURRENT_LIST_DIR} CACHE INTERNAL "Where TdslLibrary.cmake is")

# One run of tdslc: source, its stem, the target, the product (.c file or folder), byproducts as the rest.
function(_tdsl_command source stem target product stamp_out)
    set(stamp ${dir}/${stem}.${target}.stamp)
    set(written ${dir}/${stem}.${target}.d)
    set(depfile ${dir}/${stem}.${target}.deps)
    set(options "")
    foreach(define IN LISTS arg_DEFINES)
        list(APPEND options -D ${define})
    endforeach()
    foreach(folder IN LISTS arg_INCLUDE_DIRS)
        cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
        list(APPEND options -I ${folder})
    endforeach()
    if(target STREQUAL "c")
        list(APPEND options --header=${dir}/${stem}.h)
    else()
        list(APPEND options --target=${target})
    endif()
    if(TDSLC_EXECUTABLE)
        set(tool ${TDSLC_EXECUTABLE})
    else()
        set(tool Tdsl::tdslc)
    endif()
    # The tool names its own product in the dependency file; make needs the name of the stamp there.
    add_custom_command(
        OUTPUT ${stamp}
        BYPRODUCTS ${ARGN}
        COMMAND ${tool} ${source} -o ${product} ${options} -MD -MF ${written} ${arg_OPTIONS}
        COMMAND ${CMAKE_COMMAND} -DFROM=${written} -DTO=${depfile} -DSTAMP=${stamp}
                -P ${TDSL_LIBRARY_MODULE_DIR}/TdslDepfile.cmake
        DEPENDS ${source} ${tool}
        DEPFILE ${depfile}
        COMMENT "tdslc ${stem}.tdsl (${target})"
        VERBATIM)
    set(${stamp_out} ${stamp} PARENT_SCOPE)
endfunction()

function(tdsl_add_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TYPE;KERNELS_OUT" "SOURCES;DEFINES;INCLUDE_DIRS;TARGETS;OPTIONS")
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
    if(NOT arg_TARGETS)
        set(arg_TARGETS c)
    endif()
    set(dir ${CMAKE_CURRENT_BINARY_DIR}/${name}.tdsl)
    file(MAKE_DIRECTORY ${dir})

    foreach(target IN LISTS arg_TARGETS)
        set(stamps "")
        set(files "")
        set(stems "")
        foreach(source IN LISTS arg_SOURCES)
            cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
            cmake_path(GET source STEM LAST_ONLY stem)
            if(stem IN_LIST stems)
                message(FATAL_ERROR "tdsl_add_library(${name}): two sources are called ${stem}")
            endif()
            list(APPEND stems ${stem})
            if(target STREQUAL "c")
                _tdsl_command(${source} ${stem} c ${dir}/${stem}.c stamp ${dir}/${stem}.c ${dir}/${stem}.h)
                list(APPEND files ${dir}/${stem}.c ${dir}/${stem}.h)
            else()
                _tdsl_command(${source} ${stem} ${target} ${dir}/${stem}.${target} stamp)
            endif()
            list(APPEND stamps ${stamp})
        endforeach()
        add_custom_target(${name}_${target} ALL DEPENDS ${stamps})
        if(target STREQUAL "c")
            set_source_files_properties(${files} PROPERTIES GENERATED ON SKIP_LINTING ON)
            add_library(${name} ${arg_TYPE} ${files})
            add_dependencies(${name} ${name}_c)
            target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${dir}>)
            target_compile_features(${name} PRIVATE c_std_11)
            set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE C)
            if(UNIX)
                target_link_libraries(${name} PUBLIC m)
            endif()
            if(arg_KERNELS_OUT)
                set(${arg_KERNELS_OUT} ${files} PARENT_SCOPE)
            endif()
        endif()
    endforeach()
endfunction()
cmake_policy(POP)
