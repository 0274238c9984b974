# SPDX-License-Identifier: Apache-2.0
# Before a .deb is packed: the files that Debian wants, in the tree that is packed. The .tar.gz stays as `cmake --install` makes it.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
    return()
endif()
set(top ${CPACK_TEMPORARY_DIRECTORY}/usr/share)
set(doc ${top}/doc/tdsl)
configure_file(${CPACK_TDSL_DEBIAN_FILES}/copyright ${doc}/copyright COPYONLY)
configure_file(${CPACK_TDSL_DEBIAN_FILES}/lintian-overrides ${top}/lintian/overrides/tdsl COPYONLY)
configure_file(${CPACK_TDSL_DEBIAN_FILES}/changelog.in ${doc}/changelog.Debian @ONLY)
configure_file(${doc}/docs/CHANGELOG.md ${doc}/changelog COPYONLY)
file(REMOVE ${doc}/LICENSE) # on Debian it is in common-licenses
execute_process(COMMAND gzip -9nf ${doc}/changelog.Debian ${doc}/changelog COMMAND_ERROR_IS_FATAL ANY)
