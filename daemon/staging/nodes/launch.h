/* staging/nodes/launch.h: starts this program on all nodes of the configuration with mpirun, and sees to its end.
 *
 * What mpirun needs to be quick, and to notice dead nodes and cut links in bounded time, is known here (measured:
 * docs/internals/staging-run.md), so that nobody has to find it out. A run that does not end when asked is killed. */
#pragma once

#include <stdint.h>

#include "proto/base/why.h"

struct launch_options {
        const char *hosts;      /* blank- or comma-separated */
        const char *network;    /* CIDR, or "" */
        const char *agent;      /* how a node is reached: "" = ssh; else a command that gets host and command line */
        char *const *arguments; /* what each process is called with, from the program's path on; NULL behind the last */
        uint32_t timeout_s;     /* of the whole; 0: none */
        uint32_t startup_s;     /* until all nodes have come up; 0: 60, and a second more for each 4 */
};

/* Blocks until it has ended, and nothing of it is left on this host. stdout and stderr of all processes are ours, but
 * for what mpirun says itself. SIGINT, SIGTERM and SIGHUP are forwarded; what does not end within 5 s of them, or 10 s
 * after mpirun said that it ends it, is killed. Proxies and CA settings of the environment go to all nodes (by mpirun's
 * own connections, on no command line); nothing else does, credentials in particular.
 *
 * Returns the exit status of the processes; 71 (EX_OSERR) with `why` naming the node, as far as mpirun knows it, if it
 * was not a process that ended the run (a node out of reach, a link cut, a process killed, the limit of time); 128 +
 * the number of the signal that was forwarded, if nobody else had a word; -EINVAL for hosts that cannot be such;
 * -ENOENT if mpirun is not to be had; another errno. `why` is "" if there is nothing to say that has not been said. The
 * process has one thread and no other children. */
int launch(const struct launch_options *options, struct why *why);
