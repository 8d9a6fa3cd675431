#include "daemon/fetch/engine/sockets.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define EVENTS_MAX 64u
#define RETRY_NS   20000000ull /* what did not work, or is not told to us */

/* libcurl wants a socket watched, otherwise, or no longer. `watched` is NULL for one that is new to us. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *watched) {
        struct sockets *sockets = userdata;
        struct epoll_event event = { .data.fd = fd };

        if (what == CURL_POLL_REMOVE) {
                epoll_ctl(sockets->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
                return 0;
        }
        if (what & CURL_POLL_IN)
                event.events |= EPOLLIN;
        if (what & CURL_POLL_OUT)
                event.events |= EPOLLOUT;
        if (epoll_ctl(sockets->epoll_fd, watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) < 0)
                sockets->is_blind = true;
        curl_multi_assign(sockets->multi, fd, sockets);
        return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *userdata) {
        struct sockets *sockets = userdata;

        sockets->timer_ns = timeout_ms < 0 ? UINT64_MAX : clock_now_ns() + (uint64_t)timeout_ms * 1000000ull;
        return 0;
}

int sockets_init(struct sockets *sockets) {
        struct epoll_event event = { .events = EPOLLIN };
        int r = 0;

        *sockets = (struct sockets){ .epoll_fd = epoll_create1(EPOLL_CLOEXEC), .timer_ns = UINT64_MAX };
        if (sockets->epoll_fd < 0)
                r = -errno;
        sockets->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (sockets->wake_fd < 0 && r == 0)
                r = -errno;
        event.data.fd = sockets->wake_fd;
        if (r == 0 && epoll_ctl(sockets->epoll_fd, EPOLL_CTL_ADD, sockets->wake_fd, &event) < 0)
                r = -errno;
        if (r == 0 && !(sockets->multi = curl_multi_init()))
                r = -ENOMEM;
        if (r < 0) {
                sockets_fini(sockets);
                return r;
        }
        curl_multi_setopt(sockets->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
        curl_multi_setopt(sockets->multi, CURLMOPT_SOCKETDATA, sockets);
        curl_multi_setopt(sockets->multi, CURLMOPT_TIMERFUNCTION, on_timer);
        curl_multi_setopt(sockets->multi, CURLMOPT_TIMERDATA, sockets);
        return 0;
}

void sockets_fini(struct sockets *sockets) {
        if (sockets->multi)
                curl_multi_cleanup(sockets->multi); /* closes what we watch */
        sockets->multi = NULL;
        closep(&sockets->epoll_fd);
        closep(&sockets->wake_fd);
}

void sockets_wake(struct sockets *sockets) {
        uint64_t one = 1;

        if (write(sockets->wake_fd, &one, sizeof(one)) < 0)
                return; /* the counter is full: it is awake */
}

static void sockets_take_wake(struct sockets *sockets) {
        uint64_t n;

        if (read(sockets->wake_fd, &n, sizeof(n)) < 0)
                return; /* nothing was there */
}

/* The last ms is waited for whole: a turn too early would have nothing to do. */
static int timeout_ms(uint64_t until_ns) {
        uint64_t now_ns = clock_now_ns();

        return until_ns <= now_ns ? 0 : (int)((until_ns - now_ns) / 1000000ull) + 1;
}

void sockets_turn(struct sockets *sockets, uint64_t until_ns) {
        struct epoll_event events[EVENTS_MAX];
        uint64_t blind_ns = sockets->is_blind ? clock_now_ns() + RETRY_NS : UINT64_MAX;
        int n_running, n;

        until_ns = until_ns < sockets->timer_ns ? until_ns : sockets->timer_ns;
        until_ns = until_ns < blind_ns ? until_ns : blind_ns;
        n = epoll_wait(sockets->epoll_fd, events, EVENTS_MAX, timeout_ms(until_ns));
        for (int i = 0; i < n; i++) {
                uint32_t what = events[i].events;
                int mask = (what & EPOLLIN ? CURL_CSELECT_IN : 0) | (what & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                           (what & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);

                if (events[i].data.fd == sockets->wake_fd)
                        sockets_take_wake(sockets);
                else
                        curl_multi_socket_action(sockets->multi, events[i].data.fd, mask, &n_running);
        }
        if (sockets->is_blind) {
                curl_multi_perform(sockets->multi, &n_running);
        } else if (sockets->timer_ns <= clock_now_ns()) {
                sockets->timer_ns = UINT64_MAX; /* libcurl sets the next one; that there is none it does not say */
                if (curl_multi_socket_action(sockets->multi, CURL_SOCKET_TIMEOUT, 0, &n_running) != CURLM_OK)
                        sockets->timer_ns = clock_now_ns() + RETRY_NS;
        }
}
