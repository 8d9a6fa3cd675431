#include "daemon/data/files/cuts.h"

/* There are two kinds of work: looking at the next piece of the first file that has one left, and opening the next
 * file. Both are handed out in order under the lock, and done without it. Number k has the place k % n_slots, until the
 * caller takes it. */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "daemon/base/machine/cpus.h"
#include "daemon/base/threads/thread.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define N_FILES   CUTS_FILES
#define SLOTS_MIN 16u               /* others go on while a thread has lost its CPU to another program */
#define N_STATES  (2u * CUTS_SLOTS) /* more than there are slots: a piece's state is asked for after it was taken */

struct cuts_limits CUTS_LIMITS = { .cut_bytes = 256u << 10, .long_bytes = 4u << 20 };

struct cut_file {
        bool is_done; /* open() has returned, */
        int error;    /* with this error */
        struct why why;
        int fd; /* -1: not open */
        struct stat status;
        uint64_t at;    /* the next cut */
        uint64_t n_cut; /* pieces */
};

struct cut_slot {
        struct cut cut;
        bool is_done;
};

struct cut_state {
        uint64_t number; /* of the piece, plus 1 */
        uint8_t after;   /* CUTS_STATES: it is not known */
};

struct cuts {
        struct cuts_work work;
        struct cuts_limits limits;
        struct indexing *indexing; /* of the thread that asked */

        pthread_mutex_t lock;     /* covers all down to the next blank line */
        pthread_cond_t has_work;  /* for threads that have none */
        pthread_cond_t has_ended; /* some work, for the caller */
        pthread_cond_t has_state;
        struct cut_file files[N_FILES];
        struct cut_slot slots[CUTS_SLOTS];
        struct cut_state states[N_STATES];
        uint32_t n_slots;
        size_t n_opened;  /* files whose opening was begun */
        size_t cutting;   /* no file before this one has a piece left to begin */
        size_t current;   /* the caller's file */
        uint64_t n_begun; /* pieces */
        uint64_t n_taken;
        uint32_t n_idle;   /* threads that wait for has_work */
        uint32_t n_useful; /* threads that there should be, the caller's among them; 0: it is not known yet */
        uint32_t n_threads_max;
        bool is_started;
        bool is_last;           /* nothing further is opened, because there was an error */
        atomic_bool is_stopped; /* threads are to end */

        /* The caller's thread alone: */
        pthread_t threads[CUTS_THREADS];
        uint32_t n_threads; /* besides the caller's */
        uint32_t n_own;     /* jobs that the caller's thread did, n_alone at most */
        int64_t settled_ns;
};

struct cuts_job {
        struct cut_slot *slot; /* NULL: opens a file */
        size_t idx_file;
};

/* ---- work ------------------------------------------------------------------------------------------------------ */

static struct cut_file *cuts_file_at(struct cuts *cuts, size_t idx_file) {
        return &cuts->files[idx_file % N_FILES];
}

static uint64_t file_bytes(const struct cut_file *file) {
        return (uint64_t)file->status.st_size;
}

/* The first file that has a piece left to begin; NULL if there is none yet. */
static struct cut_file *file_to_cut(struct cuts *cuts) {
        for (; cuts->cutting < cuts->n_opened; cuts->cutting++) {
                struct cut_file *file = cuts_file_at(cuts, cuts->cutting);

                if (!file->is_done || file->error < 0)
                        return NULL;
                if (file->at < file_bytes(file))
                        return file;
        }
        return NULL;
}

static uint32_t n_slots_free(const struct cuts *cuts) {
        return cuts->n_slots - (uint32_t)(cuts->n_begun - cuts->n_taken);
}

static size_t n_files_free(const struct cuts *cuts) {
        size_t end = cuts->is_started ? cuts->current + N_FILES : 1;

        end = end < cuts->work.files.n ? end : cuts->work.files.n;
        return cuts->is_last || end < cuts->n_opened ? 0 : end - cuts->n_opened;
}

static bool may_begin(struct cuts *cuts) {
        if (!cuts->is_started)
                return false;
        return cuts->work.n_pieces > 0 ? cuts->n_begun < cuts->work.n_pieces : file_to_cut(cuts) != NULL;
}

/* Is there work for which that many slots, or files, are free? */
static bool cuts_is_work(struct cuts *cuts, uint32_t n_free) {
        return n_files_free(cuts) >= n_free || (n_slots_free(cuts) >= n_free && may_begin(cuts));
}

/* Nothing waits for idle threads: what the caller needs, the caller's thread does if nobody else has begun to. */
static void cuts_wake(struct cuts *cuts) {
        if (cuts->n_idle > 0 && cuts_is_work(cuts, cuts->work.n_together))
                pthread_cond_broadcast(&cuts->has_work);
}

/* The next piece gets its slot. */
static struct cut_slot *cuts_begin(struct cuts *cuts) {
        struct cut_slot *slot = &cuts->slots[cuts->n_begun % cuts->n_slots];
        struct cut_file *file = cuts->work.n_pieces > 0 ? NULL : file_to_cut(cuts);
        uint64_t begin = file ? file->at : 0, cut_bytes = cuts->work.cut_bytes;

        slot->is_done = false;
        slot->cut = (struct cut){ .fd = -1,
                                  .idx_slot = (uint32_t)(cuts->n_begun % cuts->n_slots),
                                  .number = cuts->n_begun++ };
        if (!file)
                return slot;
        file->at = file_bytes(file) - begin > cut_bytes ? begin + cut_bytes : file_bytes(file);
        slot->cut.idx_file = cuts->cutting;
        slot->cut.fd = file->fd;
        slot->cut.begin = begin;
        slot->cut.end = file->at;
        slot->cut.n_file = file_bytes(file);
        slot->cut.is_first = file->n_cut++ == 0;
        return slot;
}

static bool cuts_take_job(struct cuts *cuts, struct cuts_job *ret_job) {
        if (n_slots_free(cuts) > 0 && may_begin(cuts))
                *ret_job = (struct cuts_job){ .slot = cuts_begin(cuts) };
        else if (n_files_free(cuts) > 0)
                *ret_job = (struct cuts_job){ .idx_file = cuts->n_opened++ };
        else
                return false;
        return true;
}

/* How often this thread has waited, as for a disk, and did not only lose its CPU to another one. */
static int64_t n_waits(const struct cuts *cuts) {
        struct rusage usage = { 0 };

        if (cuts->work.is_reading)
                getrusage(RUSAGE_THREAD, &usage);
        return usage.ru_nvcsw;
}

static struct cut_file cuts_open_file(struct cuts *cuts, size_t idx_file, int64_t *settled_ns) {
        const struct cuts_files *files = &cuts->work.files;
        struct cut_file file = { .is_done = true };

        file.fd = files->open(files->userdata, idx_file, settled_ns, &file.status, &file.why);
        if (file.fd < 0) {
                file.error = file.fd;
                file.fd = -1;
        }
        return file;
}

/* With the lock held: what follows a piece is known, or never will be. */
static void cuts_set_state(struct cuts *cuts, uint64_t number, uint8_t after) {
        struct cut_state *state = &cuts->states[number % N_STATES];

        if (state->number == number + 1)
                return;
        *state = (struct cut_state){ .number = number + 1, .after = after };
        pthread_cond_broadcast(&cuts->has_state);
}

/* With the lock held, which is given back meanwhile. */
static void cuts_do_job(struct cuts *cuts, const struct cuts_job *job, int64_t *settled_ns) {
        struct cut_file file = { .fd = -1 };
        int64_t n_before;
        bool has_waited;

        pthread_mutex_unlock(&cuts->lock);
        n_before = n_waits(cuts);
        if (job->slot)
                cuts->work.look(cuts->work.userdata, cuts, &job->slot->cut);
        else
                file = cuts_open_file(cuts, job->idx_file, settled_ns);
        has_waited = n_waits(cuts) != n_before;
        pthread_mutex_lock(&cuts->lock);
        if (job->slot) {
                cuts_set_state(cuts, job->slot->cut.number, CUTS_STATES);
                job->slot->is_done = true;
        } else {
                *cuts_file_at(cuts, job->idx_file) = file;
                cuts->is_last |= file.error < 0;
                if (cuts->work.n_together == 1)
                        cuts_wake(cuts);
        }
        /* What is in memory is read by as many threads as there are CPUs. When it is not, more of them wait for it at
         * once. */
        if (has_waited && cuts->n_useful > 0 && cuts->n_useful < cuts->n_threads_max)
                cuts->n_useful++;
        pthread_cond_signal(&cuts->has_ended);
}

uint8_t cuts_state(struct cuts *cuts, const struct cut *cut, const uint8_t after[CUTS_STATES]) {
        const struct cut_state *before = &cuts->states[(cut->number + N_STATES - 1) % N_STATES];
        uint8_t state = 0;

        pthread_mutex_lock(&cuts->lock);
        if (!cut->is_first) {
                /* The piece before this one was begun before it, so a thread is at it. */
                while (before->number != cut->number)
                        pthread_cond_wait(&cuts->has_state, &cuts->lock);
                state = before->after;
        }
        cuts_set_state(cuts, cut->number, state < CUTS_STATES ? after[state] : CUTS_STATES);
        pthread_mutex_unlock(&cuts->lock);
        return state;
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

static void *cuts_look_on(void *userdata) {
        struct cuts *cuts = userdata;
        int64_t settled_ns = 0;
        struct cuts_job job;

        indexing_join(cuts->indexing);
        pthread_mutex_lock(&cuts->lock);
        while (!cuts->is_stopped) {
                if (cuts_take_job(cuts, &job)) {
                        cuts_do_job(cuts, &job, &settled_ns);
                        continue;
                }
                cuts->n_idle++;
                pthread_cond_wait(&cuts->has_work, &cuts->lock);
                cuts->n_idle--;
        }
        pthread_mutex_unlock(&cuts->lock);
        indexing_join(NULL);
        return NULL;
}

uint32_t cuts_threads(void) {
        uint32_t n = CUTS_LIMITS.n_threads;
        struct cpus cpus;

        if (n == 0) {
                cpus_find(&cpus);
                n = cpus_n_threads(&cpus);
        }
        return n < 1 ? 1 : n < CUTS_THREADS ? n : CUTS_THREADS;
}

/* Is there more work than the caller's own next piece? */
static bool is_work_for_others(struct cuts *cuts) {
        const struct cut_file *file = may_begin(cuts) && cuts->work.n_pieces == 0 ? file_to_cut(cuts) : NULL;

        if (cuts->work.n_pieces > 0)
                return cuts->n_begun + !cuts->limits.is_patient < cuts->work.n_pieces;
        return n_files_free(cuts) > 0 || (file && file_bytes(file) - file->at > cuts->work.cut_bytes);
}

/* With the lock held, which is given back meanwhile: starting takes its time. */
static void cuts_start_threads(struct cuts *cuts) {
        while (cuts->is_started && cuts->n_own >= cuts->work.n_alone && cuts->n_threads + 1 < cuts->n_threads_max &&
               is_work_for_others(cuts)) {
                bool is_first = cuts->n_useful == 0;
                uint32_t n = 0;
                int r = 0;

                if (!is_first && cuts->n_threads + 1 >= cuts->n_useful)
                        return;
                pthread_mutex_unlock(&cuts->lock);
                if (is_first)
                        n = cuts_threads();
                else
                        r = thread_start(&cuts->threads[cuts->n_threads], "index", cuts_look_on, cuts);
                pthread_mutex_lock(&cuts->lock);
                if (is_first)
                        cuts->n_useful = n < cuts->n_threads_max ? n : cuts->n_threads_max;
                else if (r == 0)
                        cuts->n_threads++;
                else /* there is a limit on threads */
                        cuts->n_threads_max = cuts->n_threads + 1;
        }
}

static bool cuts_is_patient(const struct cuts *cuts) {
        return cuts->limits.is_patient && cuts->n_threads > 0;
}

/* Works until *is_done, or waits if there is no work. With the lock held. */
static void cuts_work_until(struct cuts *cuts, const bool *is_done) {
        struct cuts_job job;

        while (!*is_done) {
                cuts_start_threads(cuts); /* gives the lock back, so *is_done is looked at after it */
                if (*is_done)
                        break;
                if (!cuts_is_patient(cuts) && cuts_take_job(cuts, &job)) {
                        cuts_do_job(cuts, &job, &cuts->settled_ns);
                        cuts->n_own += cuts->n_own < cuts->work.n_alone;
                } else {
                        pthread_cond_wait(&cuts->has_ended, &cuts->lock);
                }
        }
}

/* ---- begin and end --------------------------------------------------------------------------------------------- */

int cuts_new(const struct cuts_work *work, struct cuts **ret_cuts) {
        struct cuts *cuts = calloc(1, sizeof(*cuts));

        if (!cuts)
                return -ENOMEM;
        cuts->work = *work;
        cuts->indexing = indexing_joined();
        cuts->limits = CUTS_LIMITS;
        if (cuts->work.cut_bytes == 0)
                cuts->work.cut_bytes = cuts->limits.cut_bytes;
        if (cuts->work.n_together == 0)
                cuts->work.n_together = 1;
        cuts->n_threads_max = work->n_threads > 0 ? work->n_threads : CUTS_THREADS;
        cuts->n_slots = work->n_slots > 0 ? work->n_slots : 2 * cuts_threads();
        cuts->n_slots = cuts->n_slots > SLOTS_MIN || work->n_slots > 0 ? cuts->n_slots : SLOTS_MIN;
        cuts->is_started = work->n_pieces > 0;
        assert(cuts->work.cut_bytes > 0 && cuts->n_threads_max <= CUTS_THREADS && cuts->n_slots <= CUTS_SLOTS);
        pthread_mutex_init(&cuts->lock, NULL);
        pthread_cond_init(&cuts->has_work, NULL);
        pthread_cond_init(&cuts->has_ended, NULL);
        pthread_cond_init(&cuts->has_state, NULL);
        for (size_t i = 0; i < N_FILES; i++)
                cuts->files[i].fd = -1;
        *ret_cuts = cuts;
        return 0;
}

void cuts_free(struct cuts *cuts) {
        if (!cuts)
                return;
        pthread_mutex_lock(&cuts->lock);
        atomic_store(&cuts->is_stopped, true);
        pthread_cond_broadcast(&cuts->has_work);
        pthread_mutex_unlock(&cuts->lock);
        for (uint32_t i = 0; i < cuts->n_threads; i++)
                thread_join(cuts->threads[i]);
        for (size_t i = 0; i < N_FILES; i++)
                closep(&cuts->files[i].fd);
        pthread_cond_destroy(&cuts->has_state);
        pthread_cond_destroy(&cuts->has_ended);
        pthread_cond_destroy(&cuts->has_work);
        pthread_mutex_destroy(&cuts->lock);
        free(cuts);
}

void cuts_start(struct cuts *cuts, uint64_t first) {
        struct cut_file *file = cuts_file_at(cuts, 0);

        pthread_mutex_lock(&cuts->lock);
        assert(!cuts->is_started && cuts->current == 0 && file->is_done && first <= file_bytes(file));
        file->at = first;
        cuts->is_started = true;
        pthread_mutex_unlock(&cuts->lock);
}

/* ---- what the caller asks for ---------------------------------------------------------------------------------- */

int cuts_file(struct cuts *cuts, size_t idx, int *ret_fd, struct stat *ret_status, struct why *why) {
        struct cut_file *file = cuts_file_at(cuts, idx), *before = cuts_file_at(cuts, cuts->current);
        int r;

        assert(idx == cuts->current || idx == cuts->current + 1);
        pthread_mutex_lock(&cuts->lock);
        if (idx > cuts->current) {
                assert(cuts->is_started && before->at == file_bytes(before));
                closep(&before->fd);
                *before = (struct cut_file){ .fd = -1 };
                cuts->current = idx;
                if (cuts->cutting < idx)
                        cuts->cutting = idx;
                cuts_wake(cuts);
        }
        cuts_work_until(cuts, &file->is_done);
        r = file->error;
        if (r < 0) {
                *why = file->why;
        } else {
                *ret_fd = file->fd;
                *ret_status = file->status;
        }
        pthread_mutex_unlock(&cuts->lock);
        return r;
}

/* Whoever has nothing of his own to do is done with it. With the lock held. */
static struct cut_slot *cuts_wait_for(struct cuts *cuts, uint64_t number) {
        struct cut_slot *slot = &cuts->slots[number % cuts->n_slots];

        assert(number >= cuts->n_taken && number - cuts->n_taken < cuts->n_slots);
        if (cuts->work.is_callers && cuts->n_begun == number) {
                cuts_start_threads(cuts);
                if (cuts->n_begun == number && !cuts_is_patient(cuts)) {
                        slot = cuts_begin(cuts);
                        slot->is_done = slot->cut.is_new = true;
                }
        }
        cuts_work_until(cuts, &slot->is_done);
        return slot;
}

int cuts_next(struct cuts *cuts, struct cut *ret_cut) {
        const struct cut_slot *slot = &cuts->slots[cuts->n_taken % cuts->n_slots];
        const struct cut_file *file = cuts_file_at(cuts, cuts->current);
        int r = 0;

        pthread_mutex_lock(&cuts->lock);
        if (cuts->work.n_pieces > 0)
                r = cuts->n_taken == cuts->work.n_pieces ? CUTS_END : 0;
        else if (cuts->n_taken == cuts->n_begun ? file->at == file_bytes(file) : slot->cut.idx_file > cuts->current)
                r = CUTS_END;
        if (r == 0)
                *ret_cut = cuts_wait_for(cuts, cuts->n_taken)->cut;
        pthread_mutex_unlock(&cuts->lock);
        return r;
}

void cuts_know(struct cuts *cuts, uint64_t number) {
        pthread_mutex_lock(&cuts->lock);
        cuts_wait_for(cuts, number);
        pthread_mutex_unlock(&cuts->lock);
}

void cuts_take(struct cuts *cuts, uint64_t number) {
        if (number <= cuts->n_taken)
                return;
        pthread_mutex_lock(&cuts->lock);
        assert(number <= cuts->n_begun);
        for (; cuts->n_taken < number; cuts->n_taken++)
                cuts->slots[cuts->n_taken % cuts->n_slots].is_done = false;
        cuts_wake(cuts);
        pthread_mutex_unlock(&cuts->lock);
}

const atomic_bool *cuts_is_over(const struct cuts *cuts) {
        return &cuts->is_stopped;
}
