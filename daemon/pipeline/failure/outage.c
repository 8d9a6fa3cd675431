#include "daemon/pipeline/failure/outage.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/bitmap.h"
#include "daemon/base/log.h"
#include "daemon/base/threads/thread.h"
#include "daemon/base/work/errand.h"
#include "daemon/data/index/index.h"
#include "daemon/data/look.h"
#include "proto/base/clock.h"

#define SUSPECTS_MAX 64u /* at a time; a sample that finds no place is judged after the others */
#define PAUSE_MIN_NS 100000000ull
#define PAUSE_MAX_NS 5000000000ull
#define SILENT_NS    1000000000ull  /* a look that takes longer: the file system does not answer */
#define FORGET_NS    60000000000ull /* a suspect that has not been met again for this time is forgotten */

struct suspect {
        uint64_t sample;
        uint64_t met_ns;  /* the last time */
        uint32_t n_looks; /* in a row in which only this sample could not be read */
        uint32_t n_met;
        bool is_waiting; /* for a look */
        bool is_used;
};

struct outage {
        _Atomic uint32_t refs; /* the owner and the thread */
        struct dataset *dataset;
        _Atomic uint64_t cleared; /* number of the last look that found the dataset readable */
        _Atomic uint64_t n_ended;

        pthread_mutex_t lock; /* guards what follows; no other lock is taken under it */
        pthread_cond_t changed;
        struct suspect suspects[SUSPECTS_MAX];
        struct bitmap damaged;    /* samples that looks have proven to be damaged */
        bool has_damaged;         /* `damaged` has been allocated */
        bool is_asked;            /* a sample waits for a look that begins after this was set */
        bool is_running;          /* the thread */
        bool is_in_doubt;         /* a file was written to: its bytes are compared by the next look */
        bool is_comparing;        /* by the current one */
        atomic_bool is_abandoned; /* its owner has let go of it. Read without the lock as well */
        bool is_held;
        struct why why;
        uint64_t n_looks;    /* number of looks begun */
        uint64_t held_ns;    /* since when */
        uint64_t next_ns;    /* no look before this time */
        uint64_t looking_ns; /* when the current look began; 0: no look is running */
        uint64_t pause_ns;
};

/* ---- making and freeing -------------------------------------------------------------------------------------- */

int outage_new(struct dataset *dataset, struct outage **ret_outage) {
        struct outage *outage = calloc(1, sizeof(*outage));

        if (!outage)
                return -ENOMEM;
        atomic_store_explicit(&outage->refs, 1, memory_order_relaxed);
        outage->dataset = dataset_ref(dataset);
        pthread_mutex_init(&outage->lock, NULL);
        pthread_cond_init(&outage->changed, NULL);
        *ret_outage = outage;
        return 0;
}

static void outage_unref(struct outage *outage) {
        if (atomic_fetch_sub_explicit(&outage->refs, 1, memory_order_acq_rel) > 1)
                return;
        dataset_unref(outage->dataset);
        bitmap_fini(&outage->damaged);
        pthread_cond_destroy(&outage->changed);
        pthread_mutex_destroy(&outage->lock);
        free(outage);
}

void outage_free(struct outage *outage) {
        if (!outage)
                return;
        pthread_mutex_lock(&outage->lock);
        outage->is_abandoned = true;
        pthread_cond_signal(&outage->changed);
        pthread_mutex_unlock(&outage->lock);
        outage_unref(outage);
}

/* ---- suspects ------------------------------------------------------------------------------------------------ */

static struct suspect *suspect_find(struct outage *outage, uint64_t sample) {
        for (uint32_t i = 0; i < SUSPECTS_MAX; i++)
                if (outage->suspects[i].is_used && outage->suspects[i].sample == sample)
                        return &outage->suspects[i];
        return NULL;
}

/* A place for one more suspect: a free one, or the oldest of those that do not wait for a look. NULL if all wait. */
static struct suspect *suspect_add(struct outage *outage, uint64_t sample) {
        struct suspect *best = NULL;

        for (uint32_t i = 0; i < SUSPECTS_MAX; i++) {
                struct suspect *suspect = &outage->suspects[i];

                if (!suspect->is_used) {
                        best = suspect;
                        break;
                }
                if (!suspect->is_waiting && (!best || suspect->met_ns < best->met_ns))
                        best = suspect;
        }
        if (best)
                *best = (struct suspect){ .sample = sample, .is_used = true };
        return best;
}

static bool is_damaged(const struct outage *outage, uint64_t sample) {
        return outage->has_damaged && bitmap_has(&outage->damaged, sample);
}

/* If there is no memory for the bitmap, the sample stays a suspect, and is looked at again. */
static void set_damaged(struct outage *outage, struct suspect *suspect) {
        if (!outage->has_damaged)
                outage->has_damaged = bitmap_init(&outage->damaged,
                                                  source_n_possible(dataset_source(outage->dataset))) == 0;
        if (!outage->has_damaged)
                return;
        bitmap_add(&outage->damaged, suspect->sample);
        suspect->is_used = false;
}

static bool outage_is_wanted(const struct outage *outage) {
        return (outage->is_held || outage->is_asked) && !outage->is_abandoned;
}

/* ---- the look ------------------------------------------------------------------------------------------------ */

struct look {
        struct outage *outage;
        uint64_t number;
        uint64_t began_ns;
        uint64_t samples[SUSPECTS_MAX];
        int results[SUSPECTS_MAX];
        uint32_t n;
        bool reopened;
        bool was_held;
        uint64_t held_ns; /* if was_held: for how long */
        int result;       /* of the dataset */
        struct why why;
};

/* For data/look.h: another sample that is damaged or suspect as well would not prove anything. */
static bool on_skip(void *userdata, uint64_t sample) {
        struct look *look = userdata;
        bool skip;

        for (uint32_t i = 0; i < look->n; i++)
                if (look->samples[i] == sample)
                        return true;
        pthread_mutex_lock(&look->outage->lock);
        skip = is_damaged(look->outage, sample);
        pthread_mutex_unlock(&look->outage->lock);
        return skip;
}

static void look_begin(struct look *look, struct outage *outage) {
        *look = (struct look){ .outage = outage, .number = ++outage->n_looks, .began_ns = clock_now_ns() };
        outage->looking_ns = look->began_ns;
        outage->is_asked = false;
        outage->is_comparing = outage->is_in_doubt;
        outage->is_in_doubt = false;
        for (uint32_t i = 0; i < SUSPECTS_MAX; i++)
                if (outage->suspects[i].is_used && outage->suspects[i].is_waiting)
                        look->samples[look->n++] = outage->suspects[i].sample;
}

static int outage_compare(struct look *look) {
        struct dataset *dataset = look->outage->dataset;
        int r;

        if (!look->outage->is_held) /* which only this thread changes */
                log_info("dataset", "%s: a file was written to while it is read; its bytes are compared",
                         dataset_name(dataset));
        errand_begin(NULL, &look->outage->is_abandoned);
        r = dataset_compare_bytes(dataset, &look->outage->is_abandoned, &look->why);
        errand_end();
        if (r == 0)
                log_info("dataset", "%s: %s", dataset_name(dataset),
                         dataset_has_changed(dataset) ? "it has changed; what was written to is damage for its jobs"
                                                      : "it is the same; its jobs continue");
        return r;
}

/* Looks at the dataset before and after the samples, so that an outage that ended or began in between is not taken for
 * damage. */
static void outage_look_work(struct look *look) {
        struct dataset *dataset = look->outage->dataset;
        bool any = false;

        look->result = dataset_hold(dataset, &look->why); /* the jobs, which held it, may be gone by now */
        if (look->result < 0)
                return;
        look->result = dataset_look(dataset, on_skip, look, &look->reopened, &look->why);
        if (look->result == 0 && look->outage->is_comparing)
                look->result = outage_compare(look);
        for (uint32_t i = 0; i < look->n && look->result == 0; i++) {
                look->results[i] = dataset_look_at(dataset, look->samples[i], &look->why);
                any |= look->results[i] < 0;
                if (look->results[i] == LOOK_OUTAGE)
                        look->result = -EIO; /* `why` names the error */
        }
        if (any && look->result == 0)
                look->result = dataset_look(dataset, on_skip, look, &look->reopened, &look->why);
        dataset_leave(dataset);
}

static uint64_t outage_longer(uint64_t pause_ns) {
        return pause_ns == 0 ? PAUSE_MIN_NS : 2 * pause_ns < PAUSE_MAX_NS ? 2 * pause_ns : PAUSE_MAX_NS;
}

static void take_outage(struct outage *outage, const struct look *look) {
        uint64_t now_ns = clock_now_ns();

        outage->why = look->why;
        outage->pause_ns = outage_longer(outage->is_held ? outage->pause_ns : 0);
        outage->next_ns = now_ns + outage->pause_ns;
        if (!outage->is_held)
                outage->held_ns = now_ns;
        outage->is_held = true;
        outage->is_in_doubt |= outage->is_comparing; /* that was not done */
}

/* Takes over the results of a look, one by one. A sample that is still a suspect is read again after a pause. */
static void take_suspects(struct outage *outage, const struct look *look) {
        uint32_t n_most = 0;

        for (uint32_t i = 0; i < look->n; i++) {
                struct suspect *suspect = suspect_find(outage, look->samples[i]);
                int error = look->results[i];

                if (!suspect)
                        continue;
                suspect->is_waiting = suspect->met_ns > look->began_ns; /* met again during this look */
                suspect->n_looks = error < 0 ? suspect->n_looks + 1 : 0;
                if (error < 0 && (read_error_kind(error) != READ_ERROR_VAGUE || suspect->n_looks >= READ_ERROR_TRIES))
                        set_damaged(outage, suspect);
                else if (suspect->n_met > n_most)
                        n_most = suspect->n_met;
        }
        outage->pause_ns = n_most == 0 ? 0 : n_most > 6 ? PAUSE_MAX_NS : PAUSE_MIN_NS << (n_most - 1);
        outage->next_ns = clock_now_ns() + outage->pause_ns;
}

static void take_readable(struct outage *outage, const struct look *look) {
        if (outage->is_held || look->reopened)
                atomic_fetch_add_explicit(&outage->n_ended, 1, memory_order_release);
        outage->is_held = false;
        outage->why.text[0] = '\0';
        take_suspects(outage, look);
        atomic_store_explicit(&outage->cleared, look->number, memory_order_release);
}

/* Logs each change once. The lock is not held. */
static void look_say(const struct look *look) {
        const char *name = dataset_name(look->outage->dataset);

        if (look->result < 0 && !look->was_held)
                log_error("outage", "%s is on hold: %s; nothing is lost, reads are tried again", name, look->why.text);
        else if (look->result == 0 && look->was_held)
                log_info("outage", "%s can be read again after %.1f s; its jobs continue", name,
                         (double)look->held_ns / 1e9);
}

static void wait_until_due(struct outage *outage) {
        while (!outage->is_abandoned && clock_now_ns() < outage->next_ns)
                thread_wait_until(&outage->changed, &outage->lock, outage->next_ns);
}

static void *outage_main(void *userdata) {
        struct outage *outage = userdata;
        struct look *look = calloc(1, sizeof(*look));

        pthread_mutex_lock(&outage->lock);
        while (look && outage_is_wanted(outage)) {
                wait_until_due(outage);
                if (outage->is_abandoned)
                        break;
                look_begin(look, outage);
                pthread_mutex_unlock(&outage->lock);
                outage_look_work(look);
                pthread_mutex_lock(&outage->lock);
                outage->looking_ns = 0;
                look->was_held = outage->is_held;
                look->held_ns = clock_now_ns() - outage->held_ns;
                if (look->result < 0)
                        take_outage(outage, look);
                else
                        take_readable(outage, look);
                pthread_mutex_unlock(&outage->lock);
                look_say(look);
                pthread_mutex_lock(&outage->lock);
        }
        outage->is_running = false; /* there was no memory for the look: the next outage_poke() tries again */
        pthread_mutex_unlock(&outage->lock);
        free(look);
        outage_unref(outage);
        return NULL;
}

static void outage_start_locked(struct outage *outage) {
        pthread_t thread;

        if (outage->is_running || !outage_is_wanted(outage))
                return;
        atomic_fetch_add_explicit(&outage->refs, 1, memory_order_relaxed);
        if (thread_start(&thread, "outage", outage_main, outage) < 0) {
                atomic_fetch_sub_explicit(&outage->refs, 1, memory_order_relaxed);
                return;
        }
        outage->is_running = true;
        pthread_detach(thread); /* not joined: it may hang in the kernel for ever */
}

/* ---- public functions ---------------------------------------------------------------------------------------- */

enum outage_verdict outage_judge(struct outage *outage, uint64_t sample, int error, uint64_t *ret_round) {
        struct suspect *suspect;
        uint64_t now_ns = clock_now_ns();
        bool damaged;

        if (dataset_read_error_kind(outage->dataset, sample, error) == READ_ERROR_OWN)
                return OUTAGE_DAMAGE;
        pthread_mutex_lock(&outage->lock);
        damaged = is_damaged(outage, sample);
        if (!damaged) {
                *ret_round = outage->n_looks; /* a look that is running began before this, and does not count */
                suspect = suspect_find(outage, sample);
                if (suspect && !suspect->is_waiting && now_ns - suspect->met_ns > FORGET_NS)
                        *suspect = (struct suspect){ .sample = sample, .is_used = true };
                if (!suspect)
                        suspect = suspect_add(outage, sample);
                if (suspect) {
                        suspect->is_waiting = true;
                        suspect->met_ns = now_ns;
                        suspect->n_met++;
                }
                outage->is_asked = true;
                outage->is_in_doubt |= error == -EREMCHG;
                outage_start_locked(outage);
        }
        pthread_mutex_unlock(&outage->lock);
        return damaged ? OUTAGE_DAMAGE : OUTAGE_WAIT;
}

bool outage_has_cleared(struct outage *outage, uint64_t round) {
        bool cleared;

        if (atomic_load_explicit(&outage->cleared, memory_order_acquire) <= round)
                return false;
        pthread_mutex_lock(&outage->lock);
        cleared = !outage->is_held;
        pthread_mutex_unlock(&outage->lock);
        return cleared;
}

bool outage_is_held(struct outage *outage, struct why *ret_why) {
        bool is_silent, held;

        pthread_mutex_lock(&outage->lock);
        is_silent = outage->looking_ns != 0 && clock_now_ns() - outage->looking_ns > SILENT_NS;
        held = outage->is_held || is_silent;
        if (held && ret_why && outage->is_held)
                *ret_why = outage->why;
        else if (held && ret_why)
                why_set(ret_why, 0, "%s: %s", dataset_root(outage->dataset),
                        outage->is_comparing ? "a file was written to while it is read; its bytes are compared"
                        : dataset_origin(outage->dataset) ? "its origin does not answer"
                                                          : "its file system does not answer (a dead mount?)");
        pthread_mutex_unlock(&outage->lock);
        return held;
}

uint64_t outage_n_ended(const struct outage *outage) {
        return atomic_load_explicit(&outage->n_ended, memory_order_acquire);
}

void outage_poke(struct outage *outage) {
        pthread_mutex_lock(&outage->lock);
        outage_start_locked(outage);
        pthread_mutex_unlock(&outage->lock);
}
