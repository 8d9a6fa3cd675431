/* fetch/engine/sockets.h: a libcurl multi handle driven by epoll: a turn costs what happened in it, however many transfers
 * stand still. curl_multi_perform() looks at each of them, with a poll() of its own.
 *
 * One thread drives it; sockets_wake() may come from any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/fetch/late/curl_late.h"

struct sockets {
        CURLM *multi;
        int epoll_fd;
        int wake_fd;       /* an eventfd */
        uint64_t timer_ns; /* when libcurl wants to be called at the latest; UINT64_MAX: it does not */
        bool is_blind;     /* the kernel watches no more sockets: libcurl looks at all of them by itself */
};

/* `sockets` is where it stays. Returns 0; -ENOMEM, -EMFILE ..., with nothing left to be finished. */
int sockets_init(struct sockets *sockets);
void sockets_fini(struct sockets *sockets); /* after all handles were removed */

void sockets_wake(struct sockets *sockets);

/* Waits until something happens, until_ns at the latest, and lets libcurl do what is due. */
void sockets_turn(struct sockets *sockets, uint64_t until_ns);
