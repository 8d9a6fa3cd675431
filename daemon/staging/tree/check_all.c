/* Everything is read again: several threads, each with a large file or a chunk of small ones at a time. They change the
 * states themselves; events go through a list to the thread that waits for them all. */

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/base/clock.h"
#include "daemon/base/cpus.h"
#include "daemon/base/thread.h"
#include "daemon/staging/tree/private.h"

#define THREADS_MAX 4u /* four hash as fast as most disks read, and hold a chunk each */
#define LOOK_NS     100000000ull

struct word {
        STAILQ_ENTRY(word) entry;
        enum tree_event event;
        uint64_t n_bytes;
        struct why text;
};

struct check {
        struct tree *tree;
        pthread_mutex_t lock; /* covers what follows */
        pthread_cond_t changed;
        uint64_t next; /* chunk to begin with */
        uint64_t n_good_bytes;
        int64_t n_bad;
        int result;
        uint32_t n_running;
        STAILQ_HEAD(, word) words;
};

static void take_word(void *userdata, enum tree_event event, uint64_t n_bytes, const struct why *text) {
        struct check *check = userdata;
        struct word *word = text ? malloc(sizeof(*word)) : NULL;

        pthread_mutex_lock(&check->lock);
        if (event == TREE_KEPT)
                check->n_good_bytes += n_bytes;
        else if (word) { /* without memory it goes untold */
                *word = (struct word){ .event = event, .n_bytes = n_bytes, .text = *text };
                STAILQ_INSERT_TAIL(&check->words, word, entry);
        }
        pthread_mutex_unlock(&check->lock);
}

/* The next large file or chunk of small ones; false at the end. */
static bool take_next(struct check *check, uint64_t *ret_idx_chunk, struct chunk *ret_chunk) {
        struct tree *tree = check->tree;
        uint64_t first;
        bool taken;

        pthread_mutex_lock(&check->lock);
        taken = check->result == 0 && check->next < chunks_count(tree->chunks);
        if (taken) {
                *ret_idx_chunk = check->next;
                *ret_chunk = chunks_get(tree->chunks, check->next);
                if (file_is_large(plan_file(tree->plan, ret_chunk->first_file)))
                        check->next += chunks_of_file(tree->chunks, ret_chunk->first_file, &first);
                else
                        check->next++;
        }
        pthread_mutex_unlock(&check->lock);
        return taken;
}

static int check_unit(struct checking *checking, uint64_t idx_chunk, const struct chunk *chunk) {
        struct tree *tree = checking->tree;

        if (tree_is_cancelled(tree))
                return -ECANCELED;
        if (file_is_large(plan_file(tree->plan, chunk->first_file)))
                return check_large(checking, chunk->first_file);
        return state_is_missing(tree, idx_chunk) ? 0 : check_small(checking, idx_chunk);
}

static void *check_main(void *argument) {
        struct check *check = argument;
        struct checking checking;
        struct chunk chunk;
        uint64_t idx_chunk;
        int r = checking_init(&checking, check->tree);

        checking.say = take_word;
        checking.userdata = check;
        checking.may_grow = true;
        while (r >= 0 && take_next(check, &idx_chunk, &chunk)) {
                r = check_unit(&checking, idx_chunk, &chunk);
                if (r > 0) {
                        pthread_mutex_lock(&check->lock);
                        check->n_bad += r;
                        pthread_mutex_unlock(&check->lock);
                }
        }
        checking_fini(&checking);
        pthread_mutex_lock(&check->lock);
        if (r < 0)
                check->result = r;
        check->n_running--;
        pthread_cond_signal(&check->changed);
        pthread_mutex_unlock(&check->lock);
        return NULL;
}

static void tell_words(struct check *check) {
        struct word *word;

        while ((word = STAILQ_FIRST(&check->words)) || check->n_good_bytes > 0) {
                uint64_t n_good_bytes = check->n_good_bytes;

                check->n_good_bytes = 0;
                if (word)
                        STAILQ_REMOVE_HEAD(&check->words, entry);
                pthread_mutex_unlock(&check->lock);
                if (n_good_bytes > 0)
                        tree_tell(check->tree, TREE_KEPT, n_good_bytes, NULL);
                if (word)
                        tree_tell(check->tree, word->event, word->n_bytes, word->text.text);
                free(word);
                pthread_mutex_lock(&check->lock);
        }
}

/* Tells what is found until all threads have ended. */
static void watch(struct check *check) {
        pthread_mutex_lock(&check->lock);
        while (check->n_running > 0) {
                uint64_t when = clock_now_ns() + LOOK_NS;
                struct timespec until = { .tv_sec = (time_t)(when / 1000000000u),
                                          .tv_nsec = (long)(when % 1000000000u) };

                pthread_cond_timedwait(&check->changed, &check->lock, &until);
                tell_words(check);
                pthread_mutex_unlock(&check->lock);
                tree_tell_waiting(check->tree);
                pthread_mutex_lock(&check->lock);
        }
        tell_words(check);
        pthread_mutex_unlock(&check->lock);
}

static void init(struct check *check, struct tree *tree) {
        pthread_condattr_t attributes;

        *check = (struct check){ .tree = tree };
        STAILQ_INIT(&check->words);
        pthread_mutex_init(&check->lock, NULL);
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&check->changed, &attributes);
        pthread_condattr_destroy(&attributes);
}

/* As many threads as can be had; none is an error. */
static uint32_t start(struct check *check, pthread_t *threads) {
        uint32_t n_threads, n_started = 0;
        struct cpus cpus;
        int r = 0;

        cpus_find(&cpus);
        n_threads = cpus_n_threads(&cpus);
        if (n_threads > THREADS_MAX)
                n_threads = THREADS_MAX;
        check->n_running = n_threads;
        while (n_started < n_threads && r == 0) {
                r = thread_start(&threads[n_started], "stage-check", check_main, check);
                n_started += r == 0;
        }
        pthread_mutex_lock(&check->lock);
        check->n_running -= n_threads - n_started;
        if (n_started == 0)
                check->result = r;
        pthread_mutex_unlock(&check->lock);
        return n_started;
}

/* The usual beginning: there is nothing to look at. */
static bool is_fresh(const struct tree *tree) {
        for (uint64_t i = 0; i < chunks_count(tree->chunks); i++)
                if (!state_is_missing(tree, i))
                        return false;
        return true;
}

int64_t check_all(struct tree *tree, struct why *why) {
        pthread_t threads[THREADS_MAX];
        uint32_t n_started;
        struct check check;

        if (is_fresh(tree))
                return 0;
        init(&check, tree);
        n_started = start(&check, threads);
        watch(&check);
        for (uint32_t i = 0; i < n_started; i++)
                thread_join(threads[i]);
        if (check.result == -ECANCELED)
                return check.result;
        return check.result < 0 ? why_errno(why, check.result, "%s: checking what is there", tree->root_path)
                                : check.n_bad;
}

int64_t tree_verify(struct tree *tree, struct why *why) {
        return check_all(tree, why);
}
