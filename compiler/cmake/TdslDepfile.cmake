# SPDX-License-Identifier: Apache-2.0
# cmake -DFROM= -DTO= -DSTAMP= -P TdslDepfile.cmake: the dependency file FROM as one of STAMP, and the stamp itself.
# In the names of FROM a colon is escaped, and so is a space: the first of both ends the target.
file(READ "${FROM}" text)
string(FIND "${text}" ": " colon)
string(SUBSTRING "${text}" ${colon} -1 text)
set(target "${STAMP}")
foreach(special IN ITEMS " " "#" ":")
    string(REPLACE "${special}" "\\${special}" target "${target}")
endforeach()
string(REPLACE "$" "$$" target "${target}")
file(WRITE "${TO}" "${target}${text}")
file(TOUCH "${STAMP}")
