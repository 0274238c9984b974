# SPDX-License-Identifier: Apache-2.0
# cmake -DFLEX= -DFROM= -DNAME= -DTO= -P flex.cmake: runs flex on FROM/NAME.l and refuses a scanner that
# backs up (a rule set that is not closed under prefixes is slow and usually a mistake). Full tables with equivalence
# classes (-Cfe): compressed ones always back up, and these are faster and still small.
set(work ${TO}/${NAME}.flex)
file(MAKE_DIRECTORY ${work})
file(REMOVE ${work}/lex.backup)
execute_process(
    COMMAND ${FLEX} -Cfe --backup --outfile=${TO}/${NAME}.lex.c --header-file=${TO}/${NAME}.lex.h
            ${FROM}/${NAME}.l
    WORKING_DIRECTORY ${work}
    RESULT_VARIABLE status
    ERROR_VARIABLE messages)
if(NOT status EQUAL 0 OR messages MATCHES "warning")
    file(REMOVE ${TO}/${NAME}.lex.c)
    message(FATAL_ERROR "flex ${NAME}.l: ${messages}")
endif()
file(READ ${work}/lex.backup report)
if(NOT report MATCHES "^No backing up\\.")
    file(REMOVE ${TO}/${NAME}.lex.c)
    message(FATAL_ERROR "flex ${NAME}.l: the scanner backs up; give every prefix a rule:\n${report}")
endif()
