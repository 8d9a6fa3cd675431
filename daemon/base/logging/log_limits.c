#include "daemon/base/logging/log_limits.h"

#include <pthread.h>
#include <stddef.h>

/* Kinds and users at once. Further ones share the last tally: who can be many users (subordinate uids) shall not have
 * more lines for it. */
#define N_TALLIES 256u
#define REST      N_TALLIES

struct line_count {
        struct log_kind kind; /* format NULL: not in use */
        uint64_t begin_ns, n, n_left_out;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct line_count tallies[N_TALLIES + 1];

static bool log_limits_is_over(const struct line_count *tally, uint64_t now_ns) {
        return now_ns >= tally->begin_ns + LOG_USER_NS;
}

/* Is there nothing in it that is still needed? */
static bool is_free(const struct line_count *tally, uint64_t now_ns) {
        return !tally->kind.format || (tally->n_left_out == 0 && log_limits_is_over(tally, now_ns));
}

/* Its own, else a free one, else that of all others. */
static struct line_count *log_limits_find(const struct log_kind *kind, uint64_t now_ns) {
        const struct log_kind others = { LOG_LEVEL_WARNING, "log", "lines of more users and kinds than are counted",
                                         (uid_t)-1 };
        struct line_count *best = NULL;

        for (size_t i = 0; i < N_TALLIES; i++) {
                struct line_count *tally = &tallies[i];

                if (tally->kind.format == kind->format && tally->kind.user == kind->user)
                        return tally;
                if (!best && is_free(tally, now_ns))
                        best = tally;
        }
        if (!best)
                kind = &others;
        best = best ? best : &tallies[REST];
        if (is_free(best, now_ns))
                *best = (struct line_count){ .kind = *kind, .begin_ns = now_ns };
        return best;
}

bool limits_allow(const struct log_kind *kind, uint64_t now_ns) {
        struct line_count *tally;
        bool may;

        pthread_mutex_lock(&lock);
        tally = log_limits_find(kind, now_ns);
        if (is_free(tally, now_ns))
                *tally = (struct line_count){ .kind = tally->kind, .begin_ns = now_ns };
        may = tally->n < LOG_USER_LINES;
        tally->n += may;
        tally->n_left_out += !may;
        pthread_mutex_unlock(&lock);
        return may;
}

bool limits_take_left_out(uint64_t now_ns, struct log_left_out *ret_left_out) {
        bool found = false;

        pthread_mutex_lock(&lock);
        for (size_t i = 0; i <= REST && !found; i++) {
                struct line_count *tally = &tallies[i];

                found = tally->n_left_out > 0 && log_limits_is_over(tally, now_ns);
                if (!found)
                        continue;
                *ret_left_out = (struct log_left_out){ tally->kind, tally->n_left_out };
                *tally = (struct line_count){ 0 };
        }
        pthread_mutex_unlock(&lock);
        return found;
}

uint64_t limits_due_ns(void) {
        uint64_t due_ns = UINT64_MAX;

        pthread_mutex_lock(&lock);
        for (size_t i = 0; i <= REST; i++)
                if (tallies[i].n_left_out > 0 && tallies[i].begin_ns + LOG_USER_NS < due_ns)
                        due_ns = tallies[i].begin_ns + LOG_USER_NS;
        pthread_mutex_unlock(&lock);
        return due_ns;
}
