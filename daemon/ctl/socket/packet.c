#include "daemon/ctl/socket/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/base/work/closer.h"

/* A duplicate: the packet still has its own. */
static int descriptor_of(struct msghdr *message) {
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(message);
        int fd = -1;

        if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS &&
            cmsg->cmsg_len >= CMSG_LEN(sizeof(int)))
                memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
        return fd;
}

/* With a descriptor of ours, dropping the packet's one is not the end of it. */
static int packet_drop_first(int fd) {
        char byte;

        return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 ? -errno : 0;
}

int packet_receive(int fd, uid_t user, void *buffer, size_t capacity, size_t *ret_n_bytes, int *ret_fd) {
        union {
                char bytes[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } control;
        struct iovec iov = { .iov_base = buffer, .iov_len = capacity };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
        int sent_fd, r;
        ssize_t n;

        if (closer_has_room_for(user)) {
                message.msg_control = control.bytes;
                message.msg_controllen = CMSG_LEN(sizeof(int)); /* not CMSG_SPACE: a second one would fit */
        }
        n = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0)
                return -errno;
        sent_fd = descriptor_of(&message);
        if (message.msg_flags & MSG_TRUNC)
                r = -EMSGSIZE;
        else if (message.msg_flags & MSG_CTRUNC)
                r = -EPROTO;
        else
                r = n == 0 ? -ENOTCONN
                           : packet_drop_first(fd); /* descriptors may come even with a packet of no bytes */
        if (r < 0) {
                if (sent_fd >= 0)
                        closer_close(sent_fd, user);
                return r;
        }
        *ret_n_bytes = (size_t)n;
        *ret_fd = sent_fd;
        return 0;
}
