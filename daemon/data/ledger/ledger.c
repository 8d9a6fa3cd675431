#include "daemon/data/ledger/ledger.h"

/* A list of ledgers under one mutex, and a thread that reads and writes their files without it. */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/log.h"
#include "daemon/base/threads/queue.h"
#include "daemon/base/threads/thread.h"
#include "daemon/data/ledger/ledger_file.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define GATHER_NS 300000000ull /* damaged samples often come in groups: one open for many of them */

struct ledger {
        struct ledgers *ledgers;
        struct dataset *dataset;  /* one reference */
        LIST_ENTRY(ledger) entry; /* mutex */
        uint32_t n_refs;          /* mutex */
        bool is_loaded;           /* mutex */
        uint64_t write_at_ns;     /* mutex; 0: nothing new */
        pthread_mutex_t lock;     /* guards `book`; no other lock is taken under it */
        struct ledger_book book;
        struct ledger_file file; /* thread only */
        bool is_failing;         /* thread only: the failure has been logged */
};

struct ledgers {
        char *index_dir;
        pthread_t thread;
        pthread_mutex_t mutex; /* no other lock is taken under it */
        pthread_cond_t work;
        pthread_cond_t loaded;
        bool stop;                /* mutex */
        LIST_HEAD(, ledger) list; /* mutex */
};

/* ---- the thread ---------------------------------------------------------------------------------------------- */

static void ledger_load(struct ledger *ledger) {
        struct why why;
        int r = ledger_file_load(&ledger->file, &why);

        if (r == LEDGER_PUT_ASIDE)
                log_info("ledger", "%s: %s", dataset_name(ledger->dataset), why.text);
        else if (r < 0)
                log_warning("ledger", "%s: %s; damaged samples of earlier runs are not listed",
                            dataset_name(ledger->dataset), why.text);
}

static void ledger_write(struct ledger *ledger, enum ledger_state at_least) {
        struct why why;
        int r;

        mkdir(ledger->ledgers->index_dir, 0700); /* as for the index: only its last component may be missing */
        r = ledger_file_append(&ledger->file, at_least, &why);
        if (r < 0 && !ledger->is_failing)
                log_warning("ledger", "%s: damaged samples cannot be saved: %s; they are kept in memory",
                            dataset_name(ledger->dataset), why.text);
        if (r == 0 && ledger->is_failing)
                log_info("ledger", "%s: damaged samples are saved again", dataset_name(ledger->dataset));
        ledger->is_failing = r < 0;
}

/* No sample can be added any more. A file that was never needed is not made. */
static void ledger_close(struct ledger *ledger) {
        if (ledger->book.n_kept > 0)
                ledger_write(ledger, LEDGER_REPEATED);
        ledger_book_fini(&ledger->book);
        pthread_mutex_destroy(&ledger->lock);
        dataset_unref(ledger->dataset);
        free(ledger);
}

/* Does one piece of work. Called with the mutex, which it releases meanwhile. Ledgers that are being closed come first:
 * so the next one that opens the same file reads all of it. Returns false if nothing is due; then *ret_due_ns is the
 * time when something will be, or 0. */
static bool ledger_work(struct ledgers *ledgers, uint64_t *ret_due_ns) {
        struct ledger *ledger, *closing = NULL, *loading = NULL, *writing = NULL;
        uint64_t due_ns = 0;

        LIST_FOREACH(ledger, &ledgers->list, entry) {
                if (ledger->n_refs == 0)
                        closing = ledger;
                else if (!ledger->is_loaded)
                        loading = ledger;
                else if (ledger->write_at_ns && (!writing || ledger->write_at_ns < due_ns))
                        due_ns = (writing = ledger)->write_at_ns;
        }
        *ret_due_ns = due_ns;
        if (closing) {
                LIST_REMOVE(closing, entry);
                pthread_mutex_unlock(&ledgers->mutex);
                ledger_close(closing);
                pthread_mutex_lock(&ledgers->mutex);
        } else if (loading) {
                pthread_mutex_unlock(&ledgers->mutex);
                ledger_load(loading);
                pthread_mutex_lock(&ledgers->mutex);
                loading->is_loaded = true;
                pthread_cond_broadcast(&ledgers->loaded);
        } else if (writing && clock_now_ns() >= due_ns) {
                writing->write_at_ns = 0; /* samples that are met from here on set it again */
                pthread_mutex_unlock(&ledgers->mutex);
                ledger_write(writing, LEDGER_NEW);
                pthread_mutex_lock(&ledgers->mutex);
        } else {
                return false;
        }
        return true;
}

static void *ledger_run(void *userdata) {
        struct ledgers *ledgers = userdata;

        pthread_mutex_lock(&ledgers->mutex);
        for (;;) {
                uint64_t due_ns;

                if (ledger_work(ledgers, &due_ns))
                        continue;
                if (ledgers->stop)
                        break;
                if (due_ns)
                        thread_wait_until(&ledgers->work, &ledgers->mutex, due_ns);
                else
                        pthread_cond_wait(&ledgers->work, &ledgers->mutex);
        }
        pthread_mutex_unlock(&ledgers->mutex);
        return NULL;
}

int ledgers_new(const char *index_dir, struct ledgers **ret_ledgers) {
        struct ledgers *ledgers = calloc(1, sizeof(*ledgers));
        int r = -ENOMEM;

        if (!ledgers)
                return -ENOMEM;
        LIST_INIT(&ledgers->list);
        pthread_mutex_init(&ledgers->mutex, NULL);
        pthread_cond_init(&ledgers->work, NULL);
        pthread_cond_init(&ledgers->loaded, NULL);

        ledgers->index_dir = strdup(index_dir);
        if (ledgers->index_dir)
                r = thread_start(&ledgers->thread, "ledger", ledger_run, ledgers);
        if (r < 0) {
                free(ledgers->index_dir);
                free(ledgers);
                return r;
        }
        *ret_ledgers = ledgers;
        return 0;
}

void ledgers_free(struct ledgers *ledgers) {
        if (!ledgers)
                return;
        pthread_mutex_lock(&ledgers->mutex);
        ledgers->stop = true;
        pthread_cond_signal(&ledgers->work);
        pthread_mutex_unlock(&ledgers->mutex);
        thread_join(ledgers->thread);
        assert(LIST_EMPTY(&ledgers->list));
        pthread_mutex_destroy(&ledgers->mutex);
        pthread_cond_destroy(&ledgers->work);
        pthread_cond_destroy(&ledgers->loaded);
        free(ledgers->index_dir);
        free(ledgers);
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

static int ledger_new(struct ledgers *ledgers, struct dataset *dataset, struct ledger **ret_ledger) {
        const struct source *index = dataset_source(dataset);
        char file_name[DLP_NAME_MAX];
        struct ledger *ledger;
        int r;

        r = dataset_file_name(dataset_name(dataset), file_name, NULL);
        if (r < 0)
                return r;
        ledger = calloc(1, sizeof(*ledger));
        if (!ledger)
                return -ENOMEM;
        r = ledger_book_init(&ledger->book, source_n_possible(index));
        if (r < 0) {
                free(ledger);
                return r;
        }
        pthread_mutex_init(&ledger->lock, NULL);
        ledger->ledgers = ledgers;
        ledger->dataset = dataset_ref(dataset);
        ledger->n_refs = 1;
        ledger->file.digest = index->digest;
        ledger->file.index = index;
        ledger->file.book = &ledger->book;
        ledger->file.lock = &ledger->lock;
        /* It fits: dataset_open() has checked the name of the index, which lies beside it. */
        snprintf(ledger->file.path, sizeof(ledger->file.path), "%s/%s.errors", ledgers->index_dir, file_name);
        *ret_ledger = ledger;
        return 0;
}

static struct ledger *ledger_find(struct ledgers *ledgers, const struct dataset *dataset) {
        struct ledger *ledger;

        LIST_FOREACH(ledger, &ledgers->list, entry)
                if (ledger->n_refs > 0 && strcmp(dataset_name(ledger->dataset), dataset_name(dataset)) == 0 &&
                    strcmp(ledger->file.digest, dataset_source(dataset)->digest) == 0)
                        return ledger;
        return NULL;
}

int ledger_open(struct ledgers *ledgers, struct dataset *dataset, struct ledger **ret_ledger) {
        struct ledger *ledger;
        int r = 0;

        pthread_mutex_lock(&ledgers->mutex);
        ledger = ledger_find(ledgers, dataset);
        if (ledger) {
                ledger->n_refs++;
        } else {
                r = ledger_new(ledgers, dataset, &ledger);
                if (r == 0) {
                        LIST_INSERT_HEAD(&ledgers->list, ledger, entry);
                        pthread_cond_signal(&ledgers->work);
                }
        }
        while (r == 0 && !ledger->is_loaded)
                pthread_cond_wait(&ledgers->loaded, &ledgers->mutex);
        pthread_mutex_unlock(&ledgers->mutex);
        if (r < 0)
                return r;
        *ret_ledger = ledger;
        return 0;
}

void ledger_unref(struct ledger *ledger) {
        struct ledgers *ledgers;

        if (!ledger)
                return;
        ledgers = ledger->ledgers;
        pthread_mutex_lock(&ledgers->mutex);
        if (--ledger->n_refs == 0)
                pthread_cond_signal(&ledgers->work);
        pthread_mutex_unlock(&ledgers->mutex);
}

/* ---- adding and listing -------------------------------------------------------------------------------------- */

static void ask_to_write(struct ledger *ledger) {
        struct ledgers *ledgers = ledger->ledgers;

        pthread_mutex_lock(&ledgers->mutex);
        if (ledger->write_at_ns == 0) {
                ledger->write_at_ns = clock_now_ns() + GATHER_NS;
                pthread_cond_signal(&ledgers->work);
        }
        pthread_mutex_unlock(&ledgers->mutex);
}

void ledger_meet(struct ledger *ledger, uint64_t sample, const char *field, const char *error) {
        int64_t now_unix = time(NULL);
        int r;

        pthread_mutex_lock(&ledger->lock);
        r = ledger_book_meet(&ledger->book, sample, field, error, now_unix);
        pthread_mutex_unlock(&ledger->lock);
        if (r == LEDGER_BOOK_ADDED)
                ask_to_write(ledger);
        if (r == LEDGER_BOOK_FULL)
                log_warning("ledger",
                            "%s: %u damaged samples are listed, which is the limit; further ones are only counted",
                            dataset_name(ledger->dataset), LEDGER_ENTRIES_MAX);
}

uint64_t ledger_n_samples(struct ledger *ledger) {
        uint64_t n;

        pthread_mutex_lock(&ledger->lock);
        n = ledger->book.n_met;
        pthread_mutex_unlock(&ledger->lock);
        return n;
}

bool ledger_at(struct ledger *ledger, uint64_t idx, struct ledger_entry *ret_entry) {
        bool found;

        pthread_mutex_lock(&ledger->lock);
        found = ledger_book_at(&ledger->book, idx, ret_entry);
        pthread_mutex_unlock(&ledger->lock);
        return found;
}
