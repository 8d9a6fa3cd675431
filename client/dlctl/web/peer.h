/* web/peer.h: whose process is at the other end of a TCP connection on this machine? */
#pragma once

#include <sys/types.h>

/* Asks the kernel (NETLINK_SOCK_DIAG) for the socket that has the two addresses of `fd` the other way round. Returns 0,
 * -ENOENT if no process has such a socket any more, or another negative errno if the kernel does not tell. Does not
 * block. */
int peer_user(int fd, uid_t *ret_uid);
