#include "tests/fuzz/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/frame.h"

#define FDS_MAX 8u /* more than any packet has */

static int forker = -1; /* the process that forks: asked for a child by a path, told of its end by a pid */

static void give_up(const char *what) {
        fprintf(stderr, "fuzz: %s: %s\n", what, strerror(errno));
        _exit(2);
}

static void find(const char *what) {
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
}

static int connect_to(const char *path) {
        struct sockaddr_un address;
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || dlp_socket_address(path, &address) < 0)
                return -1;
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
                close(fd);
                return -1;
        }
        return fd;
}

/* ---- the process that connects for others -------------------------------------------------------------------- */

/* A child: connects, hands the socket over, keeps its own descriptor of it as a forked trainer would, and waits for its
 * end. */
static void child_main(int parent, const char *path) {
        int fd = connect_to(path);
        pid_t pid = getpid();

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dlp_frame_send(parent, &pid, sizeof(pid), &fd, fd >= 0, 0);
        for (;;)
                pause();
}

static void forker_main(int parent) {
        char path[128];

        for (;;) {
                ssize_t n = recv(parent, path, sizeof(path) - 1, 0);
                pid_t pid;

                if (n <= 0)
                        _exit(0);
                path[n] = '\0';
                if (n == sizeof(pid)) {
                        memcpy(&pid, path, sizeof(pid));
                        kill(pid, SIGKILL);
                        waitpid(pid, NULL, 0);
                        send(parent, path, (size_t)n, 0);
                } else if (fork() == 0) {
                        child_main(parent, path);
                }
        }
}

void outside_prepare(void) {
        int sockets[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                give_up("socketpair");
        switch (fork()) {
        case -1:
                give_up("fork");
                break;
        case 0:
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                close(sockets[0]);
                forker_main(sockets[1]);
                break;
        default:
                close(sockets[1]);
                forker = sockets[0];
        }
}

static int connect_by_other(const char *path, pid_t *ret_pid) {
        size_t n_fds = 0;
        int fd = -1;
        ssize_t n;

        if (TEMP_FAILURE_RETRY(send(forker, path, strlen(path), MSG_NOSIGNAL)) < 0)
                give_up("the process that connects for others");
        do
                n = dlp_frame_receive(forker, ret_pid, sizeof(*ret_pid), &fd, 1, &n_fds, 0);
        while (n == -EINTR); /* libFuzzer has a timer */
        if (n != sizeof(*ret_pid))
                give_up("the process that connects for others");
        if (n_fds > 0)
                fcntl(fd, F_SETFL, O_NONBLOCK);
        return fd;
}

void connection_end_process(struct connection *connection) {
        pid_t pid = connection->process;

        if (pid == 0)
                return;
        if (TEMP_FAILURE_RETRY(send(forker, &pid, sizeof(pid), MSG_NOSIGNAL)) < 0 ||
            TEMP_FAILURE_RETRY(recv(forker, &pid, sizeof(pid), 0)) != sizeof(pid))
                give_up("the process that connects for others");
        connection->process = 0;
}

/* ---- connections --------------------------------------------------------------------------------------------- */

void connection_init(struct connection *connection) {
        *connection = (struct connection){ .fd = -1, .copy = -1, .control_fd = -1, .payload_fd = -1, .release_fd = -1 };
}

void connection_open(struct connection *connection, const struct inside *inside, bool by_other) {
        connection_drop(connection);
        connection->fd = by_other ? connect_by_other(inside->socket, &connection->process) : connect_to(inside->socket);
}

void connection_unmap(struct connection *connection) {
        if (connection->control)
                munmap((void *)(uintptr_t)connection->control, connection->control_bytes);
        if (connection->payload)
                munmap(connection->payload, connection->payload_bytes);
        if (connection->control_fd >= 0)
                close(connection->control_fd);
        if (connection->payload_fd >= 0)
                close(connection->payload_fd);
        if (connection->release_fd >= 0)
                close(connection->release_fd);
        connection->control = NULL;
        connection->payload = NULL;
        connection->control_fd = connection->payload_fd = connection->release_fd = -1;
        connection->sequence = 0;
}

void connection_drop(struct connection *connection) {
        connection_unmap(connection);
        if (connection->fd >= 0)
                close(connection->fd);
        if (connection->copy >= 0)
                close(connection->copy);
        connection_end_process(connection);
        connection_init(connection);
}

struct dlp_client_page *connection_page(const struct connection *connection) {
        return (struct dlp_client_page *)connection->payload;
}

void connection_send(struct connection *connection, const void *bytes, size_t n_bytes, int fd, uint32_t n_fds) {
        union {
                char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
                struct cmsghdr align;
        } control = { 0 };
        struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = n_bytes };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

        if (n_fds > FDS_MAX)
                n_fds = FDS_MAX;
        if (n_fds > 0) {
                struct cmsghdr *cmsg;

                message.msg_control = control.bytes;
                message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                cmsg = CMSG_FIRSTHDR(&message);
                cmsg->cmsg_level = SOL_SOCKET;
                cmsg->cmsg_type = SCM_RIGHTS;
                cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                for (uint32_t i = 0; i < n_fds; i++)
                        memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &fd, sizeof(int));
        }
        if (connection->fd < 0)
                return;
        if (sendmsg(connection->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EPERM) {
                message.msg_controllen = 0; /* the kernel refuses descriptors where the daemon wants none */
                sendmsg(connection->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
}

/* ---- replies ------------------------------------------------------------------------------------------------- */

static void take_ring(struct connection *connection, const Dlp__Attached *attached, const int fds[3]) {
        void *control, *payload;

        connection_unmap(connection);
        connection->control_fd = fds[0];
        connection->payload_fd = fds[1];
        connection->release_fd = fds[2];
        control = mmap(NULL, attached->control_bytes, PROT_READ, MAP_SHARED, fds[0], 0);
        payload = mmap(NULL, attached->payload_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
        if (control == MAP_FAILED || payload == MAP_FAILED)
                find("a ring cannot be mapped as the reply says");
        if (dlp_layout_check(control, attached->control_bytes, attached->payload_bytes) < 0)
                find("the layout of a ring makes no sense");
        connection->control = control;
        connection->control_bytes = attached->control_bytes;
        connection->payload = payload;
        connection->payload_bytes = attached->payload_bytes;
}

static void take_reply(struct connection *connection, const uint8_t *bytes, size_t n_bytes, const int *fds,
                       size_t n_fds) {
        Dlp__Reply *reply = dlp__reply__unpack(NULL, n_bytes, bytes);
        bool is_ring = reply && reply->body_case == DLP__REPLY__BODY_ATTACHED;

        if (!reply || reply->protocol != DLP_PROTOCOL_VERSION)
                find("a reply that cannot be read");
        if (n_fds != (is_ring ? 3u : 0u))
                find("a reply with descriptors that do not belong to it");
        if (is_ring)
                take_ring(connection, reply->attached, fds);
        if (reply->error && (reply->error->code == 0 || !reply->error->text[0]))
                find("an error without a number or a text");
        dlp__reply__free_unpacked(reply, NULL);
}

bool connection_read(struct connection *connection) {
        static uint8_t packet[DLP_PACKET_MAX];
        int fds[DLP_FDS_MAX];
        size_t n_fds = 0;
        ssize_t n;

        if (connection->fd < 0)
                return false;
        do
                n = dlp_frame_receive(connection->fd, packet, sizeof(packet), fds, DLP_FDS_MAX, &n_fds, MSG_DONTWAIT);
        while (n == 1 && packet[0] == DLP_WAKE_BYTE);
        if (n <= 0)
                return false;
        take_reply(connection, packet, (size_t)n, fds, n_fds);
        return true;
}

void connection_await(struct connection *connection, struct inside *inside) {
        if (connection->fd < 0)
                return;
        if (!inside_wait(inside, connection->fd))
                find("a request is not answered within 20 s");
}
