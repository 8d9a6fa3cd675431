/* stager/launch.h: starts this program on all nodes of the configuration with mpirun, and sees to its end.
 *
 * What mpirun needs to be quick, and to notice dead nodes and cut links in bounded time, is known here (measured:
 * ARCHITECTURE, Staging), so that nobody has to find it out. A run that does not end when asked is killed. */
#pragma once

#include <stdint.h>

#include "daemon/base/why.h"

struct launch_options {
        const char *hosts;      /* blank- or comma-separated */
        const char *network;    /* CIDR, or "" */
        const char *agent;      /* how a node is reached: "" = ssh; else a command that gets host and command line */
        char *const *arguments; /* what each process is called with, from the program's path on; NULL behind the last */
        uint32_t timeout_s;     /* of the whole; 0: none */
};

/* Blocks until it has ended. Forwards SIGINT and SIGTERM; kills what does not end within 5 s of them. Returns the exit
 * code (sysexits: mpirun's own failures and killed processes become 71), or an errno if mpirun is not to be had. */
int launch(const struct launch_options *options, struct why *why);
