/* proto/http/http_intake.h: visitors of a listening socket are let in a few at a time.
 *
 * libevent's listener takes whoever stands in line before its loop does anything else. Processes that connect as fast
 * as they can would so fill all places again and again, and nobody's request would be read. After a few visitors the
 * listener therefore pauses for some milliseconds, in which requests are read and other work is done; who comes
 * meanwhile waits in the kernel's line. It pauses longer when there are no descriptors.
 *
 * All of it is inline: the daemon and dlctl have libevent, the client's library, which has the rest of this folder, has
 * not. */
#pragma once

#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>

#define INTAKE_AT_ONCE 8u

struct intake {
        struct evconnlistener *listener;
        struct event *again; /* listens again after a pause */
        int pause_us;
        unsigned n_at_once;
};

static inline void intake_on_again(evutil_socket_t fd, short what, void *arg) {
        struct intake *intake = (struct intake *)arg;

        (void)fd;
        (void)what;
        evconnlistener_enable(intake->listener);
}

static inline void intake_pause(struct intake *intake, int seconds, int us) {
        struct timeval pause = { .tv_sec = seconds, .tv_usec = us };

        if (event_add(intake->again, &pause) == 0) /* without memory for that it goes on */
                evconnlistener_disable(intake->listener);
        intake->n_at_once = 0;
}

/* Takes the listener over; NULL: it could not be made, and errno says why. Stays where it is. Returns 0 or a negative
 * errno; intake_end() in any case. */
static inline int intake_begin(struct intake *intake, struct event_base *base, struct evconnlistener *listener,
                               int pause_us) {
        int error = errno;

        *intake = (struct intake){ .listener = listener, .pause_us = pause_us };
        if (!listener)
                return error ? -error : -ENOMEM;
        intake->again = event_new(base, -1, 0, intake_on_again, intake);
        return intake->again ? 0 : -ENOMEM;
}

static inline void intake_end(struct intake *intake) {
        if (intake->listener)
                evconnlistener_free(intake->listener);
        if (intake->again)
                event_free(intake->again);
}

/* A visitor was let in. */
static inline void intake_count(struct intake *intake) {
        if (++intake->n_at_once == INTAKE_AT_ONCE)
                intake_pause(intake, 0, intake->pause_us);
}

/* Without descriptors a connection cannot be taken, and stays in the line: look again in a second. */
static inline void intake_lacks(struct intake *intake) {
        intake_pause(intake, 1, 0);
}
