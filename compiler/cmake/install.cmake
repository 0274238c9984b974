# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, in four components: `tool` (the programs, the emulator, the CMake package), `runtime`
# (libtdsl.so), `headers` (its headers, libtdsl.a, the pkg-config file, what CMake says of them) and `doc`. Nothing holds an absolute path, so the installed tree can be moved. Below another project nothing
# is installed, unless that one sets TDSL_INSTALL: its prefix is its own.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

foreach(tool tdslc tdsl-run)
    if(TARGET ${tool})
        add_executable(Tdsl::${tool} ALIAS ${tool})
    endif()
endforeach()
set(TDSL_NKI_EMULATOR ${PROJECT_SOURCE_DIR}/runtime/nki_emulator/run.py CACHE INTERNAL
    "The emulator, where TDSL is a subdirectory of a project")
if(NOT TDSL_INSTALL)
    return()
endif()

# Below share, where packages are found whatever machine is compiled for. The tools run on the machine that compiles, the
# runtime on the one that is compiled for, so each is an export of its own.
set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/Tdsl)
foreach(export tools:tdslc:tdsl-run runtime:tdsl_runtime:tdsl_runtime_shared)
    string(REPLACE ":" ";" targets ${export})
    list(POP_FRONT targets export)
    foreach(target IN LISTS targets)
        if(TARGET ${target})
            install(TARGETS ${target} EXPORT tdsl_${export}
                RUNTIME COMPONENT tool
                LIBRARY COMPONENT runtime NAMELINK_COMPONENT headers
                ARCHIVE COMPONENT headers)
        endif()
    endforeach()
endforeach()
install(EXPORT tdsl_tools NAMESPACE Tdsl:: FILE Tdsl-tools.cmake DESTINATION ${package_dir} COMPONENT tool)
install(EXPORT tdsl_runtime NAMESPACE Tdsl:: FILE Tdsl-runtime.cmake DESTINATION ${package_dir} COMPONENT headers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/tdsl TYPE INCLUDE COMPONENT headers)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/nki_emulator DESTINATION ${CMAKE_INSTALL_DATADIR}/tdsl
    COMPONENT tool FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)

set(TDSL_EMULATOR_INSTALLED ${CMAKE_INSTALL_DATADIR}/tdsl/nki_emulator/run.py)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/TdslConfig.cmake.in
    ${TDSL_GENERATED_DIR}/package/TdslConfig.cmake INSTALL_DESTINATION ${package_dir}
    PATH_VARS TDSL_EMULATOR_INSTALLED)
write_basic_package_version_file(${TDSL_GENERATED_DIR}/package/TdslConfigVersion.cmake
    COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${TDSL_GENERATED_DIR}/package/TdslConfig.cmake
    ${TDSL_GENERATED_DIR}/package/TdslConfigVersion.cmake
    ${CMAKE_CURRENT_LIST_DIR}/TdslLibrary.cmake ${CMAKE_CURRENT_LIST_DIR}/TdslDepfile.cmake
    DESTINATION ${package_dir} COMPONENT tool)

file(RELATIVE_PATH TDSL_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" TDSL_PC_TO_PREFIX "${TDSL_PC_TO_PREFIX}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/tdsl.pc.in ${TDSL_GENERATED_DIR}/package/tdsl.pc @ONLY)
install(FILES ${TDSL_GENERATED_DIR}/package/tdsl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT headers)

# The licence, and docs/ with the README's links to it.
set(doc_dir ${CMAKE_INSTALL_DATADIR}/doc/tdsl)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${doc_dir} COMPONENT doc)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${doc_dir} COMPONENT doc)

if(PROJECT_IS_TOP_LEVEL)
    add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR}
        -P ${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake COMMENT "Removing what was installed last" VERBATIM)
    include(${CMAKE_CURRENT_LIST_DIR}/package.cmake)
endif()
