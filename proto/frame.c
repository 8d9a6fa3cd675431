#include "proto/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int dlp_frame_send(int socket, const void *bytes, size_t n_bytes, const int *fds, size_t n_fds, int flags) {
        union {
                char bytes[CMSG_SPACE(DLP_FDS_MAX * sizeof(int))];
                struct cmsghdr align;
        } control = { 0 };
        struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = n_bytes };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
        struct cmsghdr *cmsg;
        ssize_t n;

        if (n_bytes == 0 || n_bytes > DLP_PACKET_MAX || n_fds > DLP_FDS_MAX)
                return -EMSGSIZE;

        if (n_fds > 0) {
                message.msg_control = control.bytes;
                message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                cmsg = CMSG_FIRSTHDR(&message);
                cmsg->cmsg_level = SOL_SOCKET;
                cmsg->cmsg_type = SCM_RIGHTS;
                cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
        }

        do
                n = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}

/* Takes the descriptors out of a received message; those that do not fit are closed. */
static size_t take_fds(struct msghdr *message, int *fds, size_t n_fds) {
        size_t n = 0;

        for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg)) {
                size_t n_here;

                if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
                        continue;
                n_here = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (size_t i = 0; i < n_here; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(int));
                        if (n < n_fds)
                                fds[n++] = fd;
                        else
                                close(fd);
                }
        }
        return n;
}

ssize_t dlp_frame_receive(int socket, void *buffer, size_t capacity, int *fds, size_t n_fds, size_t *ret_n_fds,
                          int flags) {
        union {
                char bytes[CMSG_SPACE(DLP_FDS_MAX * sizeof(int))];
                struct cmsghdr align;
        } control;
        struct iovec iov = { .iov_base = buffer, .iov_len = capacity };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
        size_t n_taken = 0;
        ssize_t n;

        if (n_fds > 0) {
                message.msg_control = control.bytes;
                message.msg_controllen = sizeof(control.bytes);
        }

        n = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
        if (n < 0)
                return -errno;

        if (n_fds > 0)
                n_taken = take_fds(&message, fds, n_fds);
        if (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) {
                for (size_t i = 0; i < n_taken; i++)
                        close(fds[i]);
                return message.msg_flags & MSG_TRUNC ? -EMSGSIZE : -EPROTO;
        }
        if (ret_n_fds)
                *ret_n_fds = n_taken;
        return n;
}

static int send_packed(int socket, const ProtobufCMessage *message, const int *fds, size_t n_fds, int flags) {
        size_t n_bytes = protobuf_c_message_get_packed_size(message);
        uint8_t *bytes;
        int r;

        if (n_bytes > DLP_PACKET_MAX)
                return -EMSGSIZE;
        bytes = malloc(n_bytes + 1); /* an allocation is cheap enough: messages are rare */
        if (!bytes)
                return -ENOMEM;
        protobuf_c_message_pack(message, bytes);
        r = dlp_frame_send(socket, bytes, n_bytes, fds, n_fds, flags);
        free(bytes);
        return r;
}

int dlp_request_send(int socket, const Dlp__Request *request, const int *fds, size_t n_fds, int flags) {
        return send_packed(socket, &request->base, fds, n_fds, flags);
}

int dlp_reply_send(int socket, const Dlp__Reply *reply, const int *fds, size_t n_fds, int flags) {
        return send_packed(socket, &reply->base, fds, n_fds, flags);
}

int dlp_socket_address(const char *path, struct sockaddr_un *ret_address) {
        size_t n = strlen(path);

        if (n == 0)
                return -EINVAL;
        if (n > DLP_SOCKET_PATH_MAX)
                return -ENAMETOOLONG;
        memset(ret_address, 0, sizeof(*ret_address));
        ret_address->sun_family = AF_UNIX;
        memcpy(ret_address->sun_path, path, n + 1);
        return 0;
}

const char *dlp_socket_default(void) {
        const char *path = getenv("DATALOADERD_SOCKET");

        return path && *path ? path : dlp_socket_system();
}

const char *dlp_socket_system(void) {
        return "/run/dataloaderd/dataloaderd.sock";
}
