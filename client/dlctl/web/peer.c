#include "client/dlctl/web/peer.h"

/* One question about one socket: no list is read, whatever the machine's number of connections is. A socket that its
 * process has closed is said to be root's; it has no inode, so it is nobody's. */

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "proto/base/cleanup.h"

struct question {
        struct nlmsghdr header;
        struct inet_diag_req_v2 body;
};

/* Address and port as the kernel's question has them. */
static void fill_end(const struct sockaddr_storage *address, __be32 place[4], __be16 *ret_port) {
        if (address->ss_family == AF_INET6) {
                const struct sockaddr_in6 *in6 = (const void *)address;

                memcpy(place, &in6->sin6_addr, sizeof(in6->sin6_addr));
                *ret_port = in6->sin6_port;
        } else {
                const struct sockaddr_in *in = (const void *)address;

                memcpy(place, &in->sin_addr, sizeof(in->sin_addr));
                *ret_port = in->sin_port;
        }
}

/* The socket that is asked for is the other end: its source is our peer. */
static int fill_question(int fd, struct question *question) {
        struct sockaddr_storage here = { 0 }, there = { 0 };
        socklen_t n_here = sizeof(here), n_there = sizeof(there);

        if (getsockname(fd, (struct sockaddr *)&here, &n_here) < 0 ||
            getpeername(fd, (struct sockaddr *)&there, &n_there) < 0)
                return -errno;
        if (here.ss_family != AF_INET && here.ss_family != AF_INET6)
                return -EAFNOSUPPORT;
        *question = (struct question){
                .header = { .nlmsg_len = sizeof(*question),
                            .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                            .nlmsg_flags = NLM_F_REQUEST },
                .body = { .sdiag_family = (__u8)here.ss_family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u },
        };
        fill_end(&there, question->body.id.idiag_src, &question->body.id.idiag_sport);
        fill_end(&here, question->body.id.idiag_dst, &question->body.id.idiag_dport);
        question->body.id.idiag_cookie[0] = question->body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
        return 0;
}

/* The kernel answers while it is asked, so the answer is there. */
static int peer_ask(const struct question *question, struct inet_diag_msg *ret_answer) {
        union {
                struct nlmsghdr header;
                char bytes[4096];
        } reply;
        struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
        _cleanup_(closep) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
        ssize_t n;

        if (fd < 0)
                return -errno;
        if (sendto(fd, question, sizeof(*question), 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
                return -errno;
        n = recv(fd, &reply, sizeof(reply), MSG_DONTWAIT);
        if (n < 0)
                return -errno;
        if (!NLMSG_OK(&reply.header, (size_t)n))
                return -EPROTO;
        if (reply.header.nlmsg_type == NLMSG_ERROR && reply.header.nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr))) {
                const struct nlmsgerr *error = NLMSG_DATA(&reply.header);

                return error->error < 0 ? error->error : -EPROTO;
        }
        if (reply.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
            reply.header.nlmsg_len < NLMSG_LENGTH(sizeof(*ret_answer)))
                return -EPROTO;
        memcpy(ret_answer, NLMSG_DATA(&reply.header), sizeof(*ret_answer));
        return 0;
}

int peer_user(int fd, uid_t *ret_uid) {
        struct question question;
        struct inet_diag_msg answer;
        int r;

        r = fill_question(fd, &question);
        if (r == 0)
                r = peer_ask(&question, &answer);
        if (r < 0)
                return r;
        if (answer.id.idiag_sport != question.body.id.idiag_sport ||
            answer.id.idiag_dport != question.body.id.idiag_dport || answer.idiag_inode == 0)
                return -ENOENT; /* a listening socket, which the kernel gives if there is no better one, or one without
                                   a process */
        *ret_uid = answer.idiag_uid;
        return 0;
}
