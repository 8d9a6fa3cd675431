/* top/ask.h: a look at the daemon that waits for its answers. */
#pragma once

#include "client/dlctl/control.h"
#include "client/dlctl/top/look.h"

/* Asks for status, jobs and datasets. On success *ret_look is to be freed; else the error has been printed. Returns an
 * exit code. */
int look_ask(struct control *control, struct look **ret_look);
