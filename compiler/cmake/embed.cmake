# SPDX-License-Identifier: Apache-2.0
# cmake -DFROM= -DTO= -DNAME= -P embed.cmake: writes TO, a C file that defines `const char NAME[]` as the
# bytes of FROM and a closing NUL.
file(READ ${FROM} hex HEX)
if(hex MATCHES "^(..)*[89a-f].")
    message(FATAL_ERROR "${FROM}: only ASCII can be embedded")
endif()
string(REGEX REPLACE "(................................)" "\\1\n    " hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
get_filename_component(file ${FROM} NAME)
file(WRITE ${TO} "/* Made from ${file}; do not edit. */
extern const char ${NAME}[];
const char ${NAME}[] = {
    ${hex}0x00};
")
