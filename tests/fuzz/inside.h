/* tests/fuzz/inside.h: a daemon within the process of a fuzzer: all of core/daemon.c but signals, the configuration and the wait
 * for events, which the caller steps. Its pipeline has its threads as ever.
 *
 * Datasets: "files" (12 of them, 2 classes), "pictures" (9, of which 3 are damaged), "gone" (its folder is missing). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/ctl/server.h"

struct inside {
        char socket[108];
        struct event_base *base;
        struct event *background_event;
        struct background *background;
        struct settings settings;
        struct budget budget;
        struct catalog catalog;
        struct pipeline *pipeline;
        struct server server;
        uint64_t idle_bytes; /* of the budget, when nobody is connected */
};

/* Once a process. Whatever goes wrong ends it. */
void inside_start(struct inside *inside);

/* Handles what is due now; never waits. */
void inside_step(struct inside *inside);

/* Steps until fd is readable or 20 s are over; false then. */
bool inside_wait(struct inside *inside, int fd);

/* The server ends, with all its connections, and another one begins to listen at the same place. */
void inside_restart(struct inside *inside);

/* All clients have hung up: steps until all that they held has come back. What does not come back within 20 s is a
 * find: it aborts and says what. */
void inside_settle(struct inside *inside);
