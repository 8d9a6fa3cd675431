/* Reads files of an origin through, a part after the other: then they are there, and their index says what is in them.
 * Nobody copies them: samples are read where they lie, and fetched once more if they have gone meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/threads/thread.h"
#include "daemon/data/arriving/arriving_private.h"
#include "proto/base/cleanup.h"

/* So much is there before it is indexed first, and each time TIMES times as much, as where files are unpacked
 * (store/cache/filling.c). */
#define FIRST_BYTES (1ull << 20)
#define TIMES       4u

/* Goes on with the file until there are more whole records of it. */
static int reading_go_on(struct arriving *arriving, uint32_t idx, struct why *why) {
        struct arrived_file *file = &arriving->files[idx];
        const char *name = arriving->spec.names[idx];
        _cleanup_(closep) int fd = beneath_open(arriving->root_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        uint64_t n_before = file->n_whole, n_bytes;
        struct stat status;

        if (fd < 0 || fstat(fd, &status) < 0)
                return why_errno(why, -errno, "it cannot be opened");
        n_bytes = (uint64_t)status.st_size;
        while (file->n_whole == n_before && !file->is_whole && !atomic_load(&arriving->is_over)) {
                file->n_due = file->n_due > 0 ? file->n_due * TIMES : FIRST_BYTES;
                file->is_whole = file->n_due >= n_bytes;
                if (!file->is_whole)
                        file->n_whole = arriving->spec.format->cut(fd, file->n_due, file->n_whole);
        }
        return 0;
}

static void reading_bring_on(struct arriving *arriving, uint32_t idx) {
        struct indexing indexing = { .origin = &arriving->origin,
                                     .cancel = &arriving->is_over,
                                     .is_refusing = ATOMIC_FLAG_INIT };
        struct why why;
        int r;

        indexing_join(&indexing);
        r = reading_go_on(arriving, idx, &why);
        indexing_join(NULL);
        if (r < 0)
                arriving_failed(arriving, idx, &why);
        else if (!atomic_load(&arriving->is_over))
                arriving_grown(arriving, idx, arriving->files[idx].is_whole);
}

/* With the lock, which is let go for the work. */
static void reading_take(struct arriving *arriving, size_t idx) {
        uint64_t bit = UINT64_C(1) << idx % 64;

        if (atomic_fetch_or(&arriving->taken[idx / 64], bit) & bit)
                return;
        pthread_mutex_unlock(&arriving->lock);
        reading_bring_on(arriving, (uint32_t)idx);
        atomic_fetch_and(&arriving->taken[idx / 64], ~bit);
        pthread_mutex_lock(&arriving->lock);
        arriving->n_wanted++; /* others may have found it taken */
        pthread_cond_broadcast(&arriving->changed);
}

static void *reading_main(void *userdata) {
        struct arriving *arriving = userdata;
        uint64_t n_seen;
        size_t idx;

        pthread_mutex_lock(&arriving->lock);
        while (!atomic_load(&arriving->is_over)) {
                bool is_found;

                n_seen = arriving->n_wanted; /* before the look */
                pthread_mutex_unlock(&arriving->lock);
                is_found = arriving_next(arriving, arriving->taken, arriving->numbers, &idx);
                pthread_mutex_lock(&arriving->lock);
                if (is_found)
                        reading_take(arriving, idx);
                while (!is_found && n_seen == arriving->n_wanted && !atomic_load(&arriving->is_over))
                        pthread_cond_wait(&arriving->changed, &arriving->lock);
        }
        pthread_mutex_unlock(&arriving->lock);
        return NULL;
}

void arriving_hurry(struct arriving *arriving) {
        pthread_mutex_lock(&arriving->lock);
        arriving->n_wanted++;
        pthread_cond_broadcast(&arriving->changed);
        pthread_mutex_unlock(&arriving->lock);
}

int arriving_read_through(struct arriving *arriving, int root_fd, struct why *why) {
        uint32_t n_wanted = arriving->spec.n_threads < CREW_MAX ? arriving->spec.n_threads : CREW_MAX;
        int r = 0;

        arriving->root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
        arriving->taken = calloc(arriving->spec.n / 64 + 1, sizeof(*arriving->taken));
        arriving->numbers = calloc(arriving->spec.n, sizeof(*arriving->numbers));
        if (!arriving->taken || !arriving->numbers || arriving->root_fd < 0)
                return why_errno(why, -ENOMEM, "%s", arriving->spec.root);
        for (uint32_t i = 0; i < arriving->spec.n; i++)
                arriving->numbers[i] = i;
        arriving->is_read_through = true;
        while (arriving->n_threads < n_wanted && r == 0) {
                r = thread_start(&arriving->threads[arriving->n_threads], "arrive", reading_main, arriving);
                arriving->n_threads += r == 0;
        }
        return arriving->n_threads > 0 ? 0 : why_errno(why, r, "%s: cannot start a thread", arriving->spec.root);
}

void arriving_stop_reading(struct arriving *arriving) {
        for (; arriving->n_threads > 0; arriving->n_threads--)
                thread_join(arriving->threads[arriving->n_threads - 1]);
}
