/* core/daemon.h: the life cycle of the daemon: the order in which things start and stop, and what signals do. */
#pragma once

#include <stdbool.h>

struct config;
struct private_daemon;

struct daemon_options {
        const char *config_path;        /* read again on SIGHUP; NULL: there is none */
        bool socket_is_fixed;           /* the command line named the socket */
        struct private_daemon *private; /* core/core_private.h; NULL: it was not started by its users */
};

/* Serves until it is told to end. `config` stays the caller's, and is changed by a reload. Returns an exit code
 * (sysexits.h): 0 ended on request, EX_UNAVAILABLE, EX_OSERR. It has logged the reason. */
int daemon_run(struct config *config, const struct daemon_options *options);
