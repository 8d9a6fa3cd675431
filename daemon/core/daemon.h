/* core/daemon.h: the life cycle of the daemon: the order in which things start and stop, and what signals do. */
#pragma once

#include <stdbool.h>

#include "daemon/core/settings.h"

/* Serves until it is told to end. `settings` are taken over; `config_path` is read again on SIGHUP; `socket_is_fixed`
 * says that the command line named the socket. Returns an exit code (sysexits.h): 0 ended on request, EX_UNAVAILABLE,
 * EX_OSERR. It has logged the reason. */
int daemon_run(struct settings *settings, const char *config_path, bool socket_is_fixed);
