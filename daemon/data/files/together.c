#include "daemon/data/files/together.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "daemon/base/work/crew.h"
#include "daemon/data/index/indexing.h"

#define TICK_NS 100000000ull /* between two words about progress */

struct looking {
        const struct together *together;
        struct indexing *indexing; /* of the thread that asked */
        pthread_mutex_t lock;      /* covers all below */
        uint32_t n_threads;        /* that have begun */
        size_t next;
        size_t failed; /* the first file with an error; n_files: none */
        int error;
        struct why why;
        bool is_cancelled;
};

uint32_t together_threads(size_t n_files) {
        return n_files < 1 ? 1 : n_files < TOGETHER_MAX ? (uint32_t)n_files : TOGETHER_MAX;
}

/* Returns false if nothing more is to be begun. */
static bool together_take_next(struct looking *looking, size_t *ret_file) {
        bool is_one;

        pthread_mutex_lock(&looking->lock);
        is_one = looking->next < looking->failed && !looking->is_cancelled;
        if (is_one)
                *ret_file = looking->next++;
        pthread_mutex_unlock(&looking->lock);
        return is_one;
}

static void together_note_error(struct looking *looking, size_t file, int error, const struct why *why) {
        pthread_mutex_lock(&looking->lock);
        if (file < looking->failed) {
                looking->failed = file;
                looking->error = error;
                looking->why = *why;
        }
        pthread_mutex_unlock(&looking->lock);
}

static void together_look_on(void *userdata) {
        struct looking *looking = userdata;
        const struct together *together = looking->together;
        struct indexing *before = indexing_joined();
        uint32_t idx_thread;
        size_t file;

        indexing_join(looking->indexing);
        pthread_mutex_lock(&looking->lock);
        idx_thread = looking->n_threads++;
        pthread_mutex_unlock(&looking->lock);
        while (together_take_next(looking, &file)) {
                struct why why = { 0 };
                int r = together->look(together->userdata, idx_thread, file, &why);

                if (r < 0)
                        together_note_error(looking, file, r, &why);
        }
        indexing_join(before);
}

static void together_on_tick(void *userdata) {
        struct looking *looking = userdata;
        const struct together *together = looking->together;
        const struct index_watch *watch = together->watch;

        if (watch && watch->cancel && atomic_load_explicit(watch->cancel, memory_order_relaxed)) {
                pthread_mutex_lock(&looking->lock);
                looking->is_cancelled = true;
                pthread_mutex_unlock(&looking->lock);
        }
        if (watch && watch->progress)
                watch->progress(watch->userdata, together->count(together->userdata));
        if (together->seen)
                seen_tell(together->seen, watch);
}

int together_run(const struct together *together, struct why *why) {
        struct looking looking = { .together = together,
                                   .indexing = indexing_joined(),
                                   .lock = PTHREAD_MUTEX_INITIALIZER,
                                   .failed = together->n_files };
        int r = crew_run("index", together_threads(together->n_files), together_look_on, TICK_NS, together_on_tick,
                         &looking);

        if (r < 0)
                together_look_on(&looking); /* there is a limit on threads */
        pthread_mutex_destroy(&looking.lock);
        if (looking.error < 0) {
                *why = looking.why;
                return looking.error;
        }
        return looking.is_cancelled ? why_set(why, -ECANCELED, "indexing was cancelled") : 0;
}
