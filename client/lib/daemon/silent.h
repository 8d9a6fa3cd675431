/* lib/daemon/silent.h: why a daemon does not answer, as far as the kernel tells.
 *
 * A daemon that is stopped (SIGSTOP, Ctrl-Z in its terminal, a debugger) looks like one that is overloaded: connections
 * are taken into its queue, and nobody answers. Its process's state tells them apart. */
#pragma once

#include <stdbool.h>

#include "proto/base/why.h"

/* Says that the daemon at `path`, to which `socket` is connected, does not answer; which process it is; and what to do
 * if that is stopped. The process is not named if it cannot be known: the socket may be another one's, such as
 * systemd's. Never blocks. Returns -ETIMEDOUT. */
int dli_daemon_silent(int socket, const char *path, struct why *reason);

/* Is it known to be stopped, so that it will not answer until somebody lets it go on? */
bool dli_daemon_is_stopped(int socket);
