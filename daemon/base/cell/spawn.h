/* base/cell/spawn.h: the process of a cell, started without running a line of the daemon in it. */
#pragma once

#include <sys/types.h>

#include "daemon/base/cell/cell_messages.h"

struct spawned {
        pid_t pid;   /* and its group, with what it starts */
        int channel; /* packets, to and from the process */
        int written; /* of a CELL_STRANGE: what it writes to its standard output and error, as much as a pipe holds;
                      * never blocks it or us. Else -1 */
};

/* Starts `program --cell KIND`. CELL_STRANGE: with next to no environment. CELL_INSTALLED: with the daemon's, and its
 * standard error is the daemon's, too. A negative errno. */
int spawn_cell(const char *program, const char *kind, enum cell_trust trust, struct spawned *ret_spawned);

/* Closes the channel. */
void spawned_hang_up(struct spawned *spawned);

/* Closes both descriptors. The process has been waited for. */
void spawned_close(struct spawned *spawned);
