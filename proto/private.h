/* proto/private.h: where a user's private daemon is found, so that it and its clients look in the same place.
 *
 * A private daemon serves one user, and was started by that user's own processes. Its folder is that user's alone: it
 * is made with mode 0700, and what another user made under its name is never used. Names in it:
 *
 *         private-P-N.sock   the socket            private-P-N.sock.lock   locked while the daemon lives
 *         private-P-N.log    what the daemon says  private-P-N.start       locked while a process starts it
 *
 * P is the protocol's version: a library never meets a daemon that speaks another one. N is different for processes
 * that see this folder but not the same files, or cannot reach the same socket: other mount namespaces (containers),
 * other roots, other machines. It also differs between jobs of a batch system and services (proto/job_group.h), because
 * a daemon dies with the job in which it was started, and uses its memory and CPUs. */
#pragma once

#include <stdbool.h>

#include "proto/base/why.h"

#define DLP_PRIVATE_PATH_MAX 128u /* bytes with NUL; the socket's is at most DLP_SOCKET_PATH_MAX + 1 */

struct dlp_private {
        char folder[DLP_PRIVATE_PATH_MAX];
        char socket[DLP_PRIVATE_PATH_MAX];
        char log[DLP_PRIVATE_PATH_MAX];
        char start[DLP_PRIVATE_PATH_MAX];
};

/* The first folder that can be used: dataloaderd/ in $XDG_RUNTIME_DIR (or /run/user/UID, where only the variable is
 * missing), else dataloaderd-UID/ in $TMPDIR, /tmp, /var/tmp or /dev/shm. It is made if it is missing. Returns 0; or
 * -EACCES, with each of them and what is wrong with it. Blocks for a few calls on local folders. */
int dlp_private_find(struct dlp_private *ret_private, struct why *why);

/* Where the daemon at this socket has its log, if the socket's name is that of a private daemon; else false. */
bool dlp_private_log(const char *socket, char ret_log[DLP_PRIVATE_PATH_MAX]);
