/* dlctl/once_command.h: runs a command so that nothing of it goes on when dlctl is gone. */
#pragma once

#include <stdbool.h>

#define COMMAND_TAIL_SIZE 3072u /* with NUL: what is kept of its stderr. Fits into a pipe with the rest, at once */

struct command_end {
        int status;      /* exit status, 128 + signal if one ended it, 126 or 127 if it could not be started */
        int interrupted; /* the signal that told dlctl to end and was passed on; 0: none */
        char tail[COMMAND_TAIL_SIZE];
};

/* Runs it to its end: stdin and stdout are ours, stderr is passed on as it comes. SIGINT, SIGTERM and SIGHUP are passed
 * on to it. If we are killed, it and all that it started is killed, too, and until that has happened locks that we hold
 * on files stay held. What it left running goes on if it ended with 0, and is killed if it failed. Returns 0 or an
 * errno: it did not run, or it is not known how it ended. */
int command_run(char *const *arguments, struct command_end *ret_end);
