#include "client/dlctl/diagnose/patience.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

#define TICK_NS 50000000

static volatile sig_atomic_t interrupted;

static void patience_on_interrupt(int number) {
        interrupted = 1;
}

void patience_begin(void) {
        struct sigaction action = { .sa_handler = patience_on_interrupt }; /* without SA_RESTART: signals end waits */

        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
}

bool patience_is_over(void) {
        return interrupted;
}

void patience_tick(void) {
        const struct timespec tick = { .tv_nsec = TICK_NS };

        if (!interrupted)
                nanosleep(&tick, NULL);
}
