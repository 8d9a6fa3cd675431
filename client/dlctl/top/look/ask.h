/* top/look/ask.h: a look at the daemon that waits for its answers. */
#pragma once

#include "client/dlctl/control.h"
#include "client/dlctl/top/look/glance.h"

/* Asks for status, jobs and datasets. On success *ret_glance is to be freed; else the error has been printed. Returns
 * an exit code. */
int glance_ask(struct control *control, struct glance **ret_glance);
