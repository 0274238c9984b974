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
# Of MPI, which is another one on each machine, only by `cmake --install build --component mpi`.
if(TARGET tdsl_mpi)
    install(TARGETS tdsl_mpi tdsl-run-mpi RUNTIME COMPONENT mpi EXCLUDE_FROM_ALL ARCHIVE COMPONENT mpi EXCLUDE_FROM_ALL)
    install(FILES ${PROJECT_SOURCE_DIR}/runtime/mpi/include/tdsl/mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tdsl COMPONENT mpi EXCLUDE_FROM_ALL)
endif()
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

# Manual pages and completions, printed by the tools that are installed; not where they cannot run here.
if(TARGET tdslc AND TARGET tdsl-run AND NOT CMAKE_CROSSCOMPILING)
    set(manual ${TDSL_GENERATED_DIR}/manual)
    find_program(TDSL_GZIP gzip) # manual pages are compressed, as Debian has them
    mark_as_advanced(TDSL_GZIP)
    file(MAKE_DIRECTORY ${manual})
    set(made "")
    foreach(page "tdslc.1,tdslc,man" "tdslc-fmt.1,tdslc fmt,man" "tdsl-run.1,tdsl-run,man" "tdslc,tdslc,bash" "tdsl-run,tdsl-run,bash"
            "_tdslc,tdslc,zsh" "_tdsl-run,tdsl-run,zsh" "tdslc.fish,tdslc,fish" "tdsl-run.fish,tdsl-run,fish")
        string(REPLACE "," ";" page "${page}")
        list(GET page 0 file)
        list(GET page 1 words)
        list(GET page 2 form)
        string(REPLACE " " ";" words "${words}")
        list(POP_FRONT words tool)
        set(page ${manual}/${form}/${file})
        set(compress "")
        set(end "")
        if(form STREQUAL man AND TDSL_GZIP)
            set(compress COMMAND ${TDSL_GZIP} -9nf ${page})
            set(end .gz)
        endif()
        add_custom_command(OUTPUT ${page}${end}
            COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}/${form}
            COMMAND $<TARGET_FILE:${tool}> ${words} --help=${form} > ${page}
            ${compress} DEPENDS ${tool} VERBATIM)
        list(APPEND made ${page}${end})
    endforeach()
    add_custom_target(manual ALL DEPENDS ${made})
    add_dependencies(tools manual)
    install(DIRECTORY ${manual}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tool)
    install(DIRECTORY ${manual}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tool)
    install(DIRECTORY ${manual}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT tool)
    install(DIRECTORY ${manual}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tool)
endif()

if(PROJECT_IS_TOP_LEVEL)
    # The last rule, so that it knows all files.
    install(CODE "set(BUILD \"${PROJECT_BINARY_DIR}\")\ninclude(\"${CMAKE_CURRENT_LIST_DIR}/record.cmake\")" ALL_COMPONENTS)
    add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR}
        -P ${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake COMMENT "Removing what was installed last" VERBATIM)
    include(${CMAKE_CURRENT_LIST_DIR}/package.cmake)
endif()
