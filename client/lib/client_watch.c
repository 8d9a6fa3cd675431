/* The descriptor of dlc_fd(): an epoll of its own, which stays the same when the daemon restarts, so that an event loop
 * need not know of restarts. It watches the daemon's socket. While there is no socket, it watches a clock instead: the
 * loop then calls dlc_next() now and then, which looks for the daemon. */

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "client/lib/loader.h"
#include "proto/base/cleanup.h"

#define TICK_NS 50000000

int dli_watch_begin(struct dlc_loader *loader) {
        loader->poll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (loader->poll_fd < 0)
                return why_errno(&loader->reason, -errno, "cannot make an epoll descriptor");
        return dli_watch_socket(loader);
}

/* The watched descriptors are not removed: in the child of a fork, the epoll belongs to the parent too. */
void dli_watch_end(struct dlc_loader *loader) {
        closep(&loader->timer_fd);
        closep(&loader->poll_fd);
        loader->timer_fd = loader->poll_fd = -1;
}

static int client_watch_watch(struct dlc_loader *loader, int fd) {
        struct epoll_event event = { .events = EPOLLIN };

        if (epoll_ctl(loader->poll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
                return why_errno(&loader->reason, -errno, "cannot watch the daemon's socket");
        return 0;
}

int dli_watch_socket(struct dlc_loader *loader) {
        return client_watch_watch(loader, loader->connection.socket);
}

/* Removed explicitly: a forked child may still have the socket, and then closing it here would not remove it. */
void dli_watch_no_socket(struct dlc_loader *loader) {
        if (loader->connection.socket >= 0)
                epoll_ctl(loader->poll_fd, EPOLL_CTL_DEL, loader->connection.socket, NULL);
}

void dli_watch_clock(struct dlc_loader *loader, bool on) {
        struct itimerspec ticks = { .it_interval.tv_nsec = TICK_NS, .it_value.tv_nsec = TICK_NS };

        if (!on && loader->timer_fd >= 0) {
                epoll_ctl(loader->poll_fd, EPOLL_CTL_DEL, loader->timer_fd, NULL);
                closep(&loader->timer_fd);
                loader->timer_fd = -1;
        }
        if (!on || loader->timer_fd >= 0)
                return;
        /* Without a free descriptor there is no clock. A caller that blocks in dlc_next() needs none; a caller that
         * polls learns of the daemon's return only when it calls dlc_next() for another reason. */
        loader->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (loader->timer_fd >= 0 && (timerfd_settime(loader->timer_fd, 0, &ticks, NULL) < 0 ||
                                      client_watch_watch(loader, loader->timer_fd) < 0)) {
                close(loader->timer_fd);
                loader->timer_fd = -1;
        }
}

void dli_watch_clock_read(struct dlc_loader *loader) {
        uint64_t n_ticks;

        if (loader->timer_fd >= 0 && read(loader->timer_fd, &n_ticks, sizeof(n_ticks)) < 0)
                return; /* not due */
}
