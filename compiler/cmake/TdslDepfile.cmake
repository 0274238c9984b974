# SPDX-License-Identifier: Apache-2.0
# cmake -DFROM= -DTO= -DSTAMP= -P TdslDepfile.cmake: the dependency file FROM as one of STAMP, and the stamp itself.
file(READ ${FROM} text)
string(REPLACE " " "\\ " target "${STAMP}")
string(REGEX REPLACE "^[^:]*:" "${target}:" text "${text}")
file(WRITE ${TO} "${text}")
file(TOUCH ${STAMP})
