/* ctl/socket/packet.h: receives one packet of a stranger, who may have put any descriptors into it.
 *
 * recvmsg() drops descriptors for which there is no room, and the last reference to one may take as long as its owner
 * likes (base/work/closer.h). So each packet is looked at first, which drops nothing, and taken only if it has no more
 * than the one descriptor that a request can have; what else there is goes with the connection. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Receives without waiting. `ret_fd` is -1, or a descriptor that the caller gives to closer_close(). -ENOTCONN at the
 * peer's end; -EMSGSIZE for a packet longer than `capacity`, -EPROTO for several descriptors, or one that did not
 * arrive (a descriptor limit, a security module, or the user has too many that cannot be closed). */
int packet_receive(int fd, uid_t user, void *buffer, size_t capacity, size_t *ret_n_bytes, int *ret_fd);
