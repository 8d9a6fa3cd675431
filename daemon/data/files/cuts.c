#include "daemon/data/files/cuts.h"

/* There are two kinds of work: looking at the next piece of the first file that has one left, and opening the next
 * file. Both are handed out in order under the lock, and done without it. Number k has the place k % n_slots, until the
 * caller takes it. */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/base/machine/cpus.h"
#include "daemon/base/thread.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define N_FILES   WINDOWS_FILES
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
        bool is_started;
        bool is_last;    /* nothing further is opened, because there was an error */
        bool is_stopped; /* threads are to end */

        /* The caller's thread alone: */
        pthread_t threads[CUTS_THREADS];
        uint32_t n_threads;     /* besides the caller's */
        uint32_t n_threads_max; /* the caller's among them; 0: it is not known yet */
        int64_t settled_ns;
};

struct cuts_job {
        const struct cut_slot *slot; /* NULL: opens a file */
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

static bool has_slot(const struct cuts *cuts) {
        return cuts->n_begun - cuts->n_taken < cuts->n_slots;
}

static bool may_open(const struct cuts *cuts) {
        return !cuts->is_last && cuts->n_opened < cuts->work.files.n &&
               cuts->n_opened < (cuts->is_started ? cuts->current + N_FILES : 1);
}

static bool cuts_take_job(struct cuts *cuts, struct cuts_job *ret_job) {
        struct cut_file *file = cuts->is_started && has_slot(cuts) ? file_to_cut(cuts) : NULL;
        struct cut_slot *slot;

        if (!file) {
                if (!may_open(cuts))
                        return false;
                *ret_job = (struct cuts_job){ .idx_file = cuts->n_opened++ };
                return true;
        }
        slot = &cuts->slots[cuts->n_begun % cuts->n_slots];
        slot->is_done = false;
        slot->cut = (struct cut){ .idx_file = cuts->cutting,
                                  .fd = file->fd,
                                  .begin = file->at,
                                  .n_file = file_bytes(file),
                                  .idx_slot = (uint32_t)(cuts->n_begun % cuts->n_slots),
                                  .number = cuts->n_begun };
        file->at = file_bytes(file) - file->at > cuts->limits.cut_bytes ? file->at + cuts->limits.cut_bytes
                                                                        : file_bytes(file);
        slot->cut.end = file->at;
        slot->cut.is_first = file->n_cut++ == 0;
        cuts->n_begun++;
        *ret_job = (struct cuts_job){ .slot = slot };
        return true;
}

static void cuts_open_file(struct cuts *cuts, size_t idx_file, int64_t *settled_ns) {
        struct cut_file *file = cuts_file_at(cuts, idx_file);
        struct stat status = { 0 };
        struct why why = { 0 };
        int fd;

        pthread_mutex_unlock(&cuts->lock);
        fd = cuts->work.files.open(cuts->work.files.userdata, idx_file, settled_ns, &status, &why);
        pthread_mutex_lock(&cuts->lock);
        *file = (struct cut_file){ .is_done = true, .fd = fd, .status = status };
        if (fd < 0) {
                file->fd = -1;
                file->error = fd;
                file->why = why;
                cuts->is_last = true;
        }
        pthread_cond_broadcast(&cuts->has_work);
}

/* With the lock held: what follows a piece is known, or never will be. */
static void set_state(struct cuts *cuts, uint64_t number, uint8_t after) {
        struct cut_state *state = &cuts->states[number % N_STATES];

        if (state->number == number + 1)
                return;
        *state = (struct cut_state){ .number = number + 1, .after = after };
        pthread_cond_broadcast(&cuts->has_state);
}

static void cuts_do_job(struct cuts *cuts, const struct cuts_job *job, int64_t *settled_ns) {
        if (job->slot) {
                struct cut_slot *slot = &cuts->slots[job->slot->cut.idx_slot];

                pthread_mutex_unlock(&cuts->lock);
                cuts->work.look(cuts->work.userdata, cuts, &slot->cut);
                pthread_mutex_lock(&cuts->lock);
                set_state(cuts, slot->cut.number, CUTS_STATES);
                slot->is_done = true;
        } else {
                cuts_open_file(cuts, job->idx_file, settled_ns);
        }
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
        set_state(cuts, cut->number, state < CUTS_STATES ? after[state] : CUTS_STATES);
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
                if (cuts_take_job(cuts, &job))
                        cuts_do_job(cuts, &job, &settled_ns);
                else
                        pthread_cond_wait(&cuts->has_work, &cuts->lock);
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
        return n < CUTS_THREADS ? n : CUTS_THREADS;
}

/* Is there more work than the caller's own next piece? */
static bool cuts_is_work(struct cuts *cuts) {
        const struct cut_file *file = file_to_cut(cuts);

        return may_open(cuts) || (file && file_bytes(file) - file->at > cuts->limits.cut_bytes);
}

/* With the lock held, which is given back meanwhile: starting takes its time. */
static void cuts_start_threads(struct cuts *cuts) {
        while (cuts->is_started && cuts->n_threads + 1 < cuts->n_threads_max && cuts_is_work(cuts)) {
                int r;

                pthread_mutex_unlock(&cuts->lock);
                r = thread_start(&cuts->threads[cuts->n_threads], "index", cuts_look_on, cuts);
                pthread_mutex_lock(&cuts->lock);
                if (r == 0)
                        cuts->n_threads++;
                else /* there is a limit on threads */
                        cuts->n_threads_max = cuts->n_threads + 1;
        }
}

/* Works until *is_done, or waits if there is no work. With the lock held. */
static void cuts_work_until(struct cuts *cuts, const bool *is_done) {
        struct cuts_job job;

        while (!*is_done) {
                cuts_start_threads(cuts); /* gives the lock back, so *is_done is looked at after it */
                if (*is_done)
                        break;
                if (cuts_take_job(cuts, &job))
                        cuts_do_job(cuts, &job, &cuts->settled_ns);
                else
                        pthread_cond_wait(&cuts->has_ended, &cuts->lock);
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
        assert(cuts->limits.cut_bytes > 0);
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
        cuts->is_stopped = true;
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
        uint32_t n = cuts_threads();

        pthread_mutex_lock(&cuts->lock);
        assert(!cuts->is_started && cuts->current == 0 && file->is_done && first <= file_bytes(file));
        file->at = first;
        cuts->n_threads_max = n;
        cuts->n_slots = 2 * n > SLOTS_MIN ? 2 * n : SLOTS_MIN;
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
                pthread_cond_broadcast(&cuts->has_work);
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

int cuts_next(struct cuts *cuts, struct cut *ret_cut) {
        struct cut_slot *slot = &cuts->slots[cuts->n_taken % cuts->n_slots];
        const struct cut_file *file = cuts_file_at(cuts, cuts->current);
        int r = 0;

        pthread_mutex_lock(&cuts->lock);
        if (cuts->n_taken == cuts->n_begun ? file->at == file_bytes(file) : slot->cut.idx_file > cuts->current)
                r = CUTS_END;
        if (r == 0) {
                cuts_work_until(cuts, &slot->is_done);
                *ret_cut = slot->cut;
        }
        pthread_mutex_unlock(&cuts->lock);
        return r;
}

void cuts_take(struct cuts *cuts) {
        pthread_mutex_lock(&cuts->lock);
        cuts->slots[cuts->n_taken % cuts->n_slots].is_done = false;
        cuts->n_taken++;
        pthread_cond_signal(&cuts->has_work);
        pthread_mutex_unlock(&cuts->lock);
}
