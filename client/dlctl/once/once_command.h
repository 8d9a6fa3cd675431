/* dlctl/once/once_command.h: runs a command so that no part of it continues when dlctl is gone. */
#pragma once

#include <stdbool.h>

#define COMMAND_TAIL_SIZE 3072u /* with NUL: the kept end of its stderr; the report fits into a pipe at once */

struct command_end {
        int status;      /* exit status; 128 + signal if a signal ended it; 126 or 127 if it could not be started */
        int interrupted; /* the signal that told dlctl to end and was passed on; 0: none */
        char tail[COMMAND_TAIL_SIZE];
};

/* Runs the command to its end: it has our stdin and stdout, and its stderr is passed on as it comes. SIGINT, SIGTERM
 * and SIGHUP are passed on to it. If we are killed, the command and everything that it started are killed too, and
 * until then the file locks that we hold stay held. Processes that it left running continue if it ended with 0, and are
 * killed if it failed. Returns 0, or an errno: the command did not run, or its end is unknown. */
int command_run(char *const *arguments, struct command_end *ret_end);
