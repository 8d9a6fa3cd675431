/* proto/frame.h: one control message is one packet.
 *
 * SOCK_SEQPACKET keeps message borders and delivers whole packets or nothing, so there is no parser here, only size
 * checks and descriptors. A packet of one zero byte is not a message (a message begins with a field tag) but a wake-up:
 * the daemon sends it when it publishes to a client that sleeps, so that one descriptor reports batches, replies and
 * the daemon's death. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/dataloader.pb-c.h"
#include "proto/limits.h"

#define DLP_WAKE_BYTE 0

/* Sends one packet with up to DLP_FDS_MAX descriptors (which stay the caller's). `flags` as send(2); MSG_NOSIGNAL is
 * added. Returns 0 or negative errno: -EAGAIN with MSG_DONTWAIT and a full buffer, -EMSGSIZE over DLP_PACKET_MAX. */
int dlp_frame_send(int socket, const void *bytes, size_t n_bytes, const int *fds, size_t n_fds, int flags);

/* Receives one packet. `fds` gets at most `n_fds` descriptors (close-on-exec, now the caller's) and `ret_n_fds` their
 * number; with n_fds 0 any that were sent are dropped by the kernel and the packet is refused. Returns its length; 0 at
 * the peer's end; -EMSGSIZE for a packet longer than `capacity`, -EPROTO for descriptors that were not expected or did
 * not arrive (MSG_CTRUNC: a security module or a descriptor limit), or another negative errno (-EAGAIN, -EINTR). */
ssize_t dlp_frame_receive(int socket, void *buffer, size_t capacity, int *fds, size_t n_fds, size_t *ret_n_fds,
                          int flags);

/* Packs and sends. -EMSGSIZE if the packed message is over DLP_PACKET_MAX. */
int dlp_request_send(int socket, const Dlp__Request *request, const int *fds, size_t n_fds, int flags);
int dlp_reply_send(int socket, const Dlp__Reply *reply, const int *fds, size_t n_fds, int flags);

/* Fills sun_path. -ENAMETOOLONG over DLP_SOCKET_PATH_MAX, -EINVAL if empty. */
struct sockaddr_un;
int dlp_socket_address(const char *path, struct sockaddr_un *ret_address);

/* The socket that everybody agrees on: DATALOADERD_SOCKET, else the well-known path of the node's daemon, which is
 * dlp_socket_system(). Static or environment memory. */
const char *dlp_socket_default(void);
const char *dlp_socket_system(void);
