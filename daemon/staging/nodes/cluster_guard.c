#include "daemon/staging/nodes/cluster_guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/threads/thread.h"
#include "proto/base/clock.h"

static void cluster_guard_say(const char *word) {
        if (getenv(LAST_WORD_VARIABLE) && write(STDERR_FILENO, word, strlen(word)) < 0)
                return; /* nobody is there to hear it */
}

void guard_say_first_word(void) {
        cluster_guard_say(FIRST_WORD "\n");
}

void guard_say_last_word(int status) {
        char word[64];

        snprintf(word, sizeof(word), LAST_WORD "%d\n", status);
        cluster_guard_say(word);
}

static void *guard_main(void *argument) {
        struct guard *guard = argument;
        int r = 0;

        pthread_mutex_lock(&guard->lock);
        while (!guard->has_ended && r != ETIMEDOUT)
                r = thread_wait_until(&guard->ended, &guard->lock, guard->deadline_ns);
        if (!guard->has_ended) {
                if (guard->what)
                        log_error("cluster", "%s did not come to its end within %u s: giving up", guard->what,
                                  guard->seconds);
                guard_say_last_word(guard->status);
                _exit(guard->status);
        }
        pthread_mutex_unlock(&guard->lock);
        return NULL;
}

void guard_begin(struct guard *guard, uint32_t seconds, int status, const char *what) {
        *guard = (struct guard){ .seconds = seconds, .status = status, .what = what };
        guard->deadline_ns = clock_now_ns() + seconds * 1000000000ull;
        pthread_mutex_init(&guard->lock, NULL);
        pthread_cond_init(&guard->ended, NULL);
        guard->is_running = thread_start(&guard->thread, "cluster guard", guard_main, guard) == 0;
}

void guard_end(struct guard *guard) {
        pthread_mutex_lock(&guard->lock);
        guard->has_ended = true;
        pthread_cond_signal(&guard->ended);
        pthread_mutex_unlock(&guard->lock);
        if (guard->is_running)
                thread_join(guard->thread);
        pthread_cond_destroy(&guard->ended);
        pthread_mutex_destroy(&guard->lock);
}
