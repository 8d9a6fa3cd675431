/* The look for files that cannot be decoded (data/doubts.h), on a thread of its own: opening a dataset waits for it as
 * long as it may take, and some seconds more, and then goes on without it. A disk or server that does not answer keeps
 * the thread, and not the dataset's users. */
#include <stdlib.h>

#include "daemon/base/log.h"
#include "daemon/base/threads/thread.h"
#include "daemon/data/doubts.h"
#include "daemon/pipeline/catalog/catalog_private.h"
#include "proto/base/clock.h"

#define PATIENCE_NS 5000000000ull
#define SLICE_NS    100000000ull /* between two looks whether nobody wants it any more */

struct doubts {
        struct dataset *dataset; /* a reference, held */
        uint64_t max_ns;
        pthread_t thread;
        atomic_bool is_unwanted;
        _Atomic uint64_t sample; /* whose file is being read */
        pthread_mutex_t lock;    /* a leaf; guards what follows */
        pthread_cond_t changed;
        bool has_ended;
        struct why text;
};

static void *doubts_main(void *userdata) {
        struct doubts *doubts = userdata;
        struct why text;

        errand_begin(NULL, NULL); /* one that hangs may outlive whoever asked */
        dataset_doubts(doubts->dataset, doubts->max_ns, &doubts->is_unwanted, &doubts->sample, &text);
        errand_end();
        pthread_mutex_lock(&doubts->lock);
        doubts->text = text;
        doubts->has_ended = true;
        pthread_cond_signal(&doubts->changed);
        pthread_mutex_unlock(&doubts->lock);
        return NULL;
}

static void doubts_free(struct doubts *doubts) {
        dataset_leave(doubts->dataset);
        dataset_unref(doubts->dataset);
        pthread_mutex_destroy(&doubts->lock);
        pthread_cond_destroy(&doubts->changed);
        free(doubts);
}

/* NULL: without memory, or a thread, there is no look. The dataset is held by the caller, so holding it again does not
 * ask the file system. */
static struct doubts *doubts_begin(struct dataset *dataset, uint64_t max_ns) {
        struct doubts *doubts = calloc(1, sizeof(*doubts));
        struct why why;

        if (!doubts)
                return NULL;
        if (dataset_hold(dataset, &why) < 0) {
                free(doubts);
                return NULL;
        }
        doubts->dataset = dataset_ref(dataset);
        doubts->max_ns = max_ns;
        atomic_init(&doubts->sample, DOUBTS_NO_SAMPLE);
        pthread_mutex_init(&doubts->lock, NULL);
        pthread_cond_init(&doubts->changed, NULL);
        if (thread_start(&doubts->thread, "doubts", doubts_main, doubts) == 0)
                return doubts;
        doubts_free(doubts);
        return NULL;
}

static bool catalog_doubts_await(struct doubts *doubts, const atomic_bool *cancel, struct why *ret_text) {
        uint64_t now_ns = clock_now_ns(), end_ns = now_ns + doubts->max_ns + PATIENCE_NS;
        bool has_ended;

        pthread_mutex_lock(&doubts->lock);
        for (; !doubts->has_ended && now_ns < end_ns && !atomic_load_explicit(cancel, memory_order_relaxed);
             now_ns = clock_now_ns())
                thread_wait_until(&doubts->changed, &doubts->lock,
                                  end_ns - now_ns < SLICE_NS ? end_ns : now_ns + SLICE_NS);
        has_ended = doubts->has_ended;
        if (has_ended)
                *ret_text = doubts->text;
        pthread_mutex_unlock(&doubts->lock);
        return has_ended;
}

void opening_doubt(struct opening *opening, uint64_t max_ns) {
        const atomic_bool *cancel = &opening->entry->cancelled;
        struct doubts *doubts = doubts_begin(opening->dataset, max_ns);

        opening->doubt.text[0] = '\0';
        if (!doubts)
                return;
        if (catalog_doubts_await(doubts, cancel, &opening->doubt)) {
                thread_join(doubts->thread);
                doubts_free(doubts);
                return;
        }
        atomic_store_explicit(&doubts->is_unwanted, true, memory_order_relaxed);
        opening->doubts = doubts;
}

/* ---- one that hangs --------------------------------------------------------------------------------------------- */

static void late_work(void *userdata) {
        struct doubts *doubts = userdata;

        thread_join(doubts->thread);
}

static void late_done(void *userdata) {
        doubts_free(userdata);
}

static void catalog_doubts_say(const struct doubts *doubts) {
        uint64_t sample = atomic_load_explicit(&doubts->sample, memory_order_relaxed);
        char name[SOURCE_NAME_SIZE] = "its files";
        struct why text;

        if (sample != DOUBTS_NO_SAMPLE)
                source_name(dataset_source(doubts->dataset), sample, name);
        why_set(&text, 0,
                "%s: whether its files can be decoded is not known: reading %s has not come back for %llu s (its disk or "
                "server may hang)",
                dataset_name(doubts->dataset), name, PATIENCE_NS / 1000000000u);
        log_warning("dataset", "%s", text.text);
}

/* A piece of the background waits for it, so that the daemon does not free what it uses. If that cannot be started, it
 * is left to itself with what it has. */
void opening_leave_doubts(struct opening *opening) {
        struct doubts *doubts = opening->doubts;

        if (!doubts)
                return;
        opening->doubts = NULL;
        if (!atomic_load_explicit(&opening->entry->cancelled, memory_order_relaxed))
                catalog_doubts_say(doubts);
        if (background_run(opening->entry->catalog->background, late_work, late_done, doubts) < 0)
                thread_detach(doubts->thread);
}
