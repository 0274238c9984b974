# SPDX-License-Identifier: Apache-2.0
# Runs at the end of each installation, with BUILD set: notes in BUILD/installed what was installed where, for uninstall.cmake. A
# place, which is a prefix below DESTDIR, has one file, with a line for each file: its digest and its path. What cpack stages is no
# installation.
set(place "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
if(place MATCHES "/_CPack_Packages/")
    return()
endif()
string(SHA256 name "${place}")
string(SUBSTRING ${name} 0 16 name)
set(list ${BUILD}/installed/${name}.txt)
set(lines "")
if(EXISTS ${list}) # components are installed one by one
    file(STRINGS ${list} lines)
endif()
foreach(file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
    set(file "$ENV{DESTDIR}${file}")
    list(FILTER lines EXCLUDE REGEX "^[^ ]* ${file}$")
    if(IS_SYMLINK "${file}")
        file(READ_SYMLINK "${file}" digest)
        string(SHA256 digest "link ${digest}")
    else()
        file(SHA256 "${file}" digest)
    endif()
    list(APPEND lines "${digest} ${file}")
endforeach()
list(JOIN lines "\n" lines)
file(WRITE ${list} "${lines}\n")
file(WRITE ${BUILD}/installed/last.txt "${name}")
