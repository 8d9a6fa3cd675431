#include "daemon/data/files/windows.h"

/* There are two kinds of work: opening the next file, and reading the next window of the first file that has one left.
 * Both are handed out in order under the lock, and done without it. A window is numbered from the first of all; number
 * k has the place k % N_WINDOWS of the ring, until the caller gives it up. */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/base/machine/cpus.h"
#include "daemon/base/thread.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define N_WINDOWS WINDOWS_RING
#define N_FILES   WINDOWS_FILES
#define ALONE     4u /* files and windows for which no thread is started */

struct opened {
        bool is_done; /* open() has returned, */
        int error;    /* with this error */
        struct why why;
        int fd; /* -1 when all is read */
        struct stat status;
        uint64_t n_windows, n_begun, n_read;
};

struct window {
        bool is_done; /* it was read, */
        int error;    /* with this error */
};

struct job {
        bool is_window;
        size_t idx_file;
        uint64_t window, offset;
};

struct windows {
        struct indexing *indexing; /* of the thread that made it */
        struct windows_files files;
        uint8_t *ring;

        pthread_mutex_t lock;     /* covers all down to the next blank line */
        pthread_cond_t has_work;  /* for threads that have none */
        pthread_cond_t has_ended; /* some work, for the caller */
        uint32_t n_threads_max;   /* the caller's among them */
        struct opened opened[N_FILES];
        struct window slots[N_WINDOWS];
        size_t n_opened;     /* files whose opening was begun */
        size_t reading;      /* no file before this one has a window left to begin */
        uint64_t n_begun;    /* windows */
        bool is_last;        /* nothing further is opened, because there was an error, */
        bool is_broken;      /* or read */
        bool is_stopped;     /* threads are to end */
        bool is_awaited;     /* the caller waits for has_ended */
        uint32_t n_idle;     /* threads that wait for has_work */
        uint32_t n_useful;   /* threads that there should be, the caller's among them; 0: it is not known yet */
        size_t current;      /* the caller's file; written by the caller's thread alone, as the next one is */
        uint64_t n_given_up; /* windows */

        /* The caller's thread alone: */
        pthread_t threads[WINDOWS_THREADS];
        uint32_t n_threads; /* besides the caller's */
        uint32_t n_own;     /* pieces of work that the caller's thread did, ALONE at most */
        int64_t settled_ns;
        uint64_t n_known; /* windows that were read, without an error */
};

/* ---- work ------------------------------------------------------------------------------------------------------ */

static struct opened *opened_at(struct windows *windows, size_t idx_file) {
        return &windows->opened[idx_file % N_FILES];
}

static struct window *windows_window_at(struct windows *windows, uint64_t window) {
        return &windows->slots[window % N_WINDOWS];
}

/* The first file that has a window left to begin; NULL if there is none yet. */
static struct opened *file_to_read(struct windows *windows) {
        for (; windows->reading < windows->n_opened; windows->reading++) {
                struct opened *file = opened_at(windows, windows->reading);

                if (!file->is_done || file->error < 0 || windows->is_broken)
                        return NULL;
                if (file->n_begun < file->n_windows)
                        return file;
        }
        return NULL;
}

static uint32_t n_windows_free(const struct windows *windows) {
        return N_WINDOWS - (uint32_t)(windows->n_begun - windows->n_given_up);
}

static size_t n_files_free(const struct windows *windows) {
        if (windows->is_last || windows->is_broken || windows->n_opened == windows->files.n)
                return 0;
        return windows->current + N_FILES - windows->n_opened;
}

/* Is there work for which that many windows, or files, are free? */
static bool windows_is_work(struct windows *windows, uint32_t n_free) {
        return n_files_free(windows) >= n_free || (n_windows_free(windows) >= n_free && file_to_read(windows));
}

static bool windows_take_job(struct windows *windows, struct job *ret_job) {
        struct opened *file = n_windows_free(windows) > 0 ? file_to_read(windows) : NULL;

        if (file) {
                *ret_job = (struct job){ .is_window = true,
                                         .idx_file = windows->reading,
                                         .window = windows->n_begun++,
                                         .offset = file->n_begun++ * WINDOWS_BYTES };
                return true;
        }
        if (n_files_free(windows) == 0)
                return false;
        *ret_job = (struct job){ .idx_file = windows->n_opened++ };
        return true;
}

/* How often this thread has waited, as for a disk, and did not only lose its CPU to another one. */
static int64_t n_waits(void) {
        struct rusage usage = { 0 };

        getrusage(RUSAGE_THREAD, &usage);
        return usage.ru_nvcsw;
}

/* What is in memory is read by as many threads as there are CPUs. When it is not, more of them wait for it at once. */
static void note_wait(struct windows *windows, bool has_waited) {
        if (has_waited && windows->n_useful > 0 && windows->n_useful < windows->n_threads_max)
                windows->n_useful++;
}

static void windows_open_file(struct windows *windows, const struct job *job, int64_t *settled_ns) {
        struct opened *file = opened_at(windows, job->idx_file);
        struct stat status;
        struct why why = { 0 };
        int64_t n_before;
        bool has_waited;
        int fd;

        pthread_mutex_unlock(&windows->lock);
        n_before = n_waits();
        fd = windows->files.open(windows->files.userdata, job->idx_file, settled_ns, &status, &why);
        has_waited = n_waits() != n_before;
        if (fd >= 0 && status.st_size == 0)
                close(fd);
        pthread_mutex_lock(&windows->lock);
        note_wait(windows, has_waited);
        file->is_done = true;
        if (fd < 0) {
                file->error = fd;
                file->why = why;
                windows->is_last = true;
                return;
        }
        file->fd = status.st_size > 0 ? fd : -1;
        file->status = status;
        file->n_windows = ((uint64_t)status.st_size + WINDOWS_BYTES - 1) / WINDOWS_BYTES;
}

static void read_window(struct windows *windows, const struct job *job) {
        struct opened *file = opened_at(windows, job->idx_file);
        struct window *window = windows_window_at(windows, job->window);
        uint64_t left = (uint64_t)file->status.st_size - job->offset;
        int64_t n_before;
        bool has_waited;
        int fd = file->fd, r;

        pthread_mutex_unlock(&windows->lock);
        n_before = n_waits();
        r = indexing_read_at(fd, windows->ring + job->window % N_WINDOWS * WINDOWS_BYTES,
                             left < WINDOWS_BYTES ? (size_t)left : WINDOWS_BYTES, job->offset);
        has_waited = n_waits() != n_before;
        pthread_mutex_lock(&windows->lock);
        note_wait(windows, has_waited);
        window->is_done = true;
        window->error = r;
        windows->is_broken |= r < 0;
        if (++file->n_read < file->n_windows)
                return;
        file->fd = -1;
        pthread_mutex_unlock(&windows->lock);
        close(fd);
        pthread_mutex_lock(&windows->lock);
}

static void windows_do_job(struct windows *windows, const struct job *job, int64_t *settled_ns) {
        if (job->is_window)
                read_window(windows, job);
        else
                windows_open_file(windows, job, settled_ns);
        if (windows->is_awaited)
                pthread_cond_signal(&windows->has_ended);
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

static void *read_on(void *userdata) {
        struct windows *windows = userdata;
        int64_t settled_ns = 0;
        struct job job;

        indexing_join(windows->indexing);
        pthread_mutex_lock(&windows->lock);
        while (!windows->is_stopped) {
                if (windows_take_job(windows, &job)) {
                        windows_do_job(windows, &job, &settled_ns);
                        continue;
                }
                windows->n_idle++;
                pthread_cond_wait(&windows->has_work, &windows->lock);
                windows->n_idle--;
        }
        pthread_mutex_unlock(&windows->lock);
        indexing_join(NULL);
        return NULL;
}

/* Threads that wait are woken when there is work for several of them, since waking costs as much as reading a little.
 * Nothing waits for them: what the caller needs, the caller's thread reads if nobody else has begun to. */
static void wake(struct windows *windows) {
        if (windows->n_idle > 0 && windows_is_work(windows, N_WINDOWS / 2))
                pthread_cond_broadcast(&windows->has_work);
}

static uint32_t n_cpus(void) {
        struct cpus cpus;

        cpus_find(&cpus);
        return cpus_n_threads(&cpus);
}

/* With the lock held, which is given back meanwhile: starting takes its time. */
static void windows_start_threads(struct windows *windows) {
        while (windows->n_own == ALONE && windows->n_threads + 1 < windows->n_threads_max &&
               windows_is_work(windows, 1)) {
                bool is_first = windows->n_useful == 0;
                uint32_t n = 0;
                int r = 0;

                if (!is_first && windows->n_threads + 1 >= windows->n_useful)
                        return;
                pthread_mutex_unlock(&windows->lock);
                if (is_first)
                        n = n_cpus();
                else
                        r = thread_start(&windows->threads[windows->n_threads], "index", read_on, windows);
                pthread_mutex_lock(&windows->lock);
                if (is_first)
                        windows->n_useful = n < windows->n_threads_max ? n : windows->n_threads_max;
                else if (r == 0)
                        windows->n_threads++;
                else /* there is a limit on threads */
                        windows->n_threads_max = windows->n_threads + 1;
        }
}

static void stop_threads(struct windows *windows) {
        pthread_mutex_lock(&windows->lock);
        windows->is_stopped = true;
        pthread_cond_broadcast(&windows->has_work);
        pthread_mutex_unlock(&windows->lock);
        for (uint32_t i = 0; i < windows->n_threads; i++)
                thread_join(windows->threads[i]);
        windows->n_threads = 0;
}

/* Works until *is_done, or waits if there is no work. With the lock held. */
static void windows_work_until(struct windows *windows, const bool *is_done) {
        struct job job;

        while (!*is_done) {
                if (windows_take_job(windows, &job)) {
                        windows_do_job(windows, &job, &windows->settled_ns);
                        windows->n_own += windows->n_own < ALONE;
                } else {
                        windows->is_awaited = true;
                        pthread_cond_wait(&windows->has_ended, &windows->lock);
                        windows->is_awaited = false;
                }
                windows_start_threads(windows); /* gives the lock back, so *is_done is looked at after it */
        }
}

/* ---- begin and end --------------------------------------------------------------------------------------------- */

int windows_new(uint32_t n_threads, struct windows **ret_windows) {
        struct windows *windows = calloc(1, sizeof(*windows));
        uint8_t *ring = malloc((size_t)N_WINDOWS * WINDOWS_BYTES);

        assert(n_threads >= 1 && n_threads <= WINDOWS_THREADS);
        if (!windows || !ring) {
                free(windows);
                free(ring);
                return -ENOMEM;
        }
        windows->ring = ring;
        windows->indexing = indexing_joined();
        windows->n_threads_max = n_threads;
        pthread_mutex_init(&windows->lock, NULL);
        pthread_cond_init(&windows->has_work, NULL);
        pthread_cond_init(&windows->has_ended, NULL);
        for (size_t i = 0; i < N_FILES; i++)
                windows->opened[i].fd = -1;
        *ret_windows = windows;
        return 0;
}

/* Files that were opened and not read to their end are closed. */
static void forget_files(struct windows *windows) {
        for (size_t i = 0; i < N_FILES; i++) {
                closep(&windows->opened[i].fd);
                windows->opened[i] = (struct opened){ .fd = -1 };
        }
        for (size_t i = 0; i < N_WINDOWS; i++)
                windows->slots[i] = (struct window){ 0 };
}

void windows_free(struct windows *windows) {
        if (!windows)
                return;
        stop_threads(windows);
        forget_files(windows);
        pthread_cond_destroy(&windows->has_ended);
        pthread_cond_destroy(&windows->has_work);
        pthread_mutex_destroy(&windows->lock);
        free(windows->ring);
        free(windows);
}

void windows_begin(struct windows *windows, const struct windows_files *files) {
        stop_threads(windows);
        forget_files(windows);
        pthread_mutex_lock(&windows->lock);
        windows->files = *files;
        windows->n_opened = windows->reading = windows->current = 0;
        windows->n_begun = windows->n_given_up = 0;
        windows->n_useful = 0;
        windows->is_last = windows->is_broken = windows->is_stopped = false;
        pthread_mutex_unlock(&windows->lock);
        windows->n_own = 0;
        windows->n_known = 0;
}

/* ---- what the caller asks for ---------------------------------------------------------------------------------- */

void windows_give_up(struct windows *windows, uint64_t window) {
        if (window <= windows->n_given_up)
                return;
        pthread_mutex_lock(&windows->lock);
        for (; windows->n_given_up < window; windows->n_given_up++)
                windows_window_at(windows, windows->n_given_up)->is_done = false;
        wake(windows);
        pthread_mutex_unlock(&windows->lock);
}

int windows_know(struct windows *windows, uint64_t window) {
        int r = 0;

        if (window < windows->n_known)
                return 0;
        pthread_mutex_lock(&windows->lock);
        while (windows->n_known <= window && r == 0) {
                struct window *next = windows_window_at(windows, windows->n_known);

                windows_work_until(windows, &next->is_done);
                r = next->error;
                windows->n_known += r == 0;
        }
        pthread_mutex_unlock(&windows->lock);
        return r;
}

int windows_file(struct windows *windows, size_t idx, struct stat *ret_status, struct why *why) {
        struct opened *file = opened_at(windows, idx);
        int r;

        pthread_mutex_lock(&windows->lock);
        if (idx > windows->current) {
                *opened_at(windows, windows->current) = (struct opened){ .fd = -1 };
                windows->current = idx;
                if (windows->reading < idx)
                        windows->reading = idx;
                wake(windows);
        }
        windows_work_until(windows, &file->is_done);
        r = file->error;
        if (r < 0)
                *why = file->why;
        else
                *ret_status = file->status;
        pthread_mutex_unlock(&windows->lock);
        return r;
}

const uint8_t *windows_bytes(const struct windows *windows, uint64_t window) {
        return windows->ring + window % N_WINDOWS * WINDOWS_BYTES;
}
