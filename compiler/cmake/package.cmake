# SPDX-License-Identifier: Apache-2.0
# `cpack` in the build folder: tdsl_VERSION_ARCH.deb and tdsl-VERSION-SYSTEM.tar.gz, of what `cmake --install` installs. With
# SOURCE_DATE_EPOCH in the environment both are the same bytes for the same tree.
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME tdsl)
set(CPACK_PACKAGE_VENDOR TDSL)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiler for tensor contractions")
set(CPACK_PACKAGE_DESCRIPTION "TDSL compiles kernels of tensor contractions, elementwise operations and
reductions to portable C, which needs libc and libm only, or to NKI programs
for AWS Trainium. Everything between a kernel's parameters and its results
becomes one program, whose intermediates stay in caches where they can.
.
This package has the compiler, a program that runs kernels, the optional
runtime library with its headers, and the CMake package.")
set(CPACK_PACKAGE_CONTACT "TDSL packagers <packagers@tdsl.invalid>" CACHE STRING "Maintainer that packages name")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_SOURCE_IGNORE_FILES "/build/;/\\\\.git;__pycache__")
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian/prepare.cmake)
set(CPACK_TDSL_DEBIAN_FILES ${CMAKE_CURRENT_LIST_DIR}/debian)
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gcc | c-compiler")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, python3-numpy")
configure_file(${CMAKE_CURRENT_LIST_DIR}/debian/shlibs.in ${TDSL_GENERATED_DIR}/package/shlibs @ONLY)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/debian/triggers ${TDSL_GENERATED_DIR}/package/shlibs)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
