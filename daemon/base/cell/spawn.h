/* base/cell/spawn.h: the process of a cell, started without running a line of the daemon in it. */
#pragma once

#include <sys/types.h>

struct spawned {
        pid_t pid;
        int channel; /* packets, to and from the process */
        int written; /* what it writes to its standard output and error, as much as a pipe holds; never blocks it or us
                      */
};

/* Starts `program --cell KIND` with next to no environment. A negative errno. */
int spawn_cell(const char *program, const char *kind, struct spawned *ret_spawned);

/* Closes both descriptors. The process has been waited for. */
void spawned_close(struct spawned *spawned);
