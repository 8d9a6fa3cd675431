/* core/daemon.h: the life of the daemon: what is started in which order, what a signal does, what is stopped last. */
#pragma once

#include <stdbool.h>

#include "daemon/core/settings.h"

/* Serves until it is told to end. `settings` are taken over; `config_path` is read again on SIGHUP; `socket_is_fixed`
 * says that the command line named the socket. Returns an exit code (sysexits.h): 0 ended as asked, EX_UNAVAILABLE,
 * EX_OSERR. Logs whatever it returns. */
int daemon_run(struct settings *settings, const char *config_path, bool socket_is_fixed);
