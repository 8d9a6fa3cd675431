/* staging/nodes/cluster_guard.h: ends the process if a call that knows no deadline does not come back. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* What the launcher (staging/nodes/launch.h) waits for: that the run has begun, which mpirun does not say, and that it
 * ends, since mpirun's own word can get lost with the node that it ends for. On stderr: FIRST_WORD, or LAST_WORD and
 * the status, and a line's end; and only if the variable is set, since it is not for people. */
#define FIRST_WORD                                                                                                     \
        "\x1e"                                                                                                         \
        "begins"
#define LAST_WORD                                                                                                      \
        "\x1e"                                                                                                         \
        "ends with "
#define LAST_WORD_VARIABLE "DATALOADERD_STAGE_LAUNCHED"

/* By each process as soon as it runs: mpirun starts none before all nodes have come up. */
void guard_say_first_word(void);

/* For whoever ends the run from within. */
void guard_say_last_word(int status);

struct guard {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t ended;
        bool has_ended; /* under lock */
        bool is_running;
        uint64_t deadline_ns;
        uint32_t seconds;
        int status;
        const char *what;
};

/* From now on, for `seconds`: then the process says `what` (NULL: nothing) and ends with `status`, without further ado.
 * If no thread can be started, nothing is guarded. Both from the same thread; `guard` stays where it is in between. */
void guard_begin(struct guard *guard, uint32_t seconds, int status, const char *what);
void guard_end(struct guard *guard);
