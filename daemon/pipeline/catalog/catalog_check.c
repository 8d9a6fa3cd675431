/* Has a folder changed since its index was made? It is checked before a new rank is served from it, while no other rank
 * is, or if it is known to have changed under those. The check has a thread of its own, because a dead mount does not
 * answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/pipeline/catalog/catalog_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define PATIENCE_NS 1000000000ull /* of an attach that waits for a look: after this it is told so, and asks again */

struct check {
        struct catalog *catalog;
        char *name;
        struct catalog_dataset *open; /* a reference */
        struct errands *errands;      /* entry_errands() */
        int result;
        struct why why;
};

static void check_work(void *userdata) {
        struct check *check = userdata;

        errand_begin(check->errands, NULL);
        check->result = check->open->arrival ? 0 : dataset_is_current(check->open->dataset, &check->why);
        if (check->open->arrival && !arrival_is_current(check->open->arrival))
                check->result = why_set(&check->why, SOURCE_STALE, "a compressed file has changed");
        if (check->result == 0 && check->open->unpacked && !unpacked_is_current(check->open->unpacked))
                check->result = why_set(&check->why, SOURCE_STALE, "a compressed file has changed");
        errand_end();
}

void entry_wake_waiters(struct catalog_entry *entry) {
        struct catalog_waiter *waiter;

        while ((waiter = TAILQ_FIRST(&entry->waiters))) {
                TAILQ_REMOVE(&entry->waiters, waiter, entry);
                waiter->done(waiter, false);
        }
}

/* No rank is served from it, or those that are have met what was written to it meanwhile. */
static bool may_go(const struct catalog_dataset *open) {
        return atomic_load_explicit(&open->refs, memory_order_acquire) == 1 || dataset_has_changed(open->dataset);
}

/* The index is built again if the folder is a different one now. A folder that cannot be looked at does not count as
 * different: its index is kept, and jobs that are served from it wait until it can be read
 * (pipeline/failure/outage.h). */
static void check_done(void *userdata) {
        struct check *check = userdata;
        struct catalog_entry *entry = entry_find(check->catalog, check->name);
        bool is_arriving = entry && entry->arriving == check->open;
        bool is_same = entry && (entry->open == check->open || is_arriving);

        catalog_dataset_unref(check->open); /* if the entry still has this one, it has its own reference */
        if (is_same) {
                entry->is_checking = false;
                if (is_arriving && check->result == SOURCE_STALE && may_go(entry->arriving)) {
                        log_info("dataset", "%s: %s; unpacking it again", entry->name, check->why.text);
                        catalog_dataset_unref(TAKE_PTR(entry->arriving));
                } else if (check->result == SOURCE_STALE && !check->catalog->is_ending && may_go(entry->open)) {
                        log_info("dataset", "%s: %s; indexing it again", entry->name, check->why.text);
                        catalog_dataset_unref(entry->open);
                        entry->open = NULL;
                        entry->catalog->asker = check->errands;
                        entry_open(entry);
                        entry->catalog->asker = NULL;
                }
                entry_wake_waiters(entry);
        }
        free(check->name);
        free(check);
}

void entry_check(struct catalog_entry *entry) {
        struct catalog_dataset *open = NULL;
        struct check *check;

        if (entry->staged || entry->is_checking) /* a version never changes, and a new version has a new stamp */
                return;
        if (entry->state == CATALOG_READY && may_go(entry->open))
                open = entry->open;
        else if (entry->arriving && may_go(entry->arriving))
                open = entry->arriving;
        if (!open)
                return;
        check = calloc(1, sizeof(*check));
        if (check)
                check->name = strdup(entry->name);
        if (!check || !check->name) {
                free(check);
                return;
        }
        check->catalog = entry->catalog;
        check->errands = entry_errands(entry);
        check->open = catalog_dataset_ref(open);
        entry->is_checking = background_run(entry->catalog->background, check_work, check_done, check) == 0;
        if (!entry->is_checking) {
                catalog_dataset_unref(check->open);
                free(check->name);
                free(check);
        }
}

int catalog_check(struct catalog *catalog, const char *name, struct catalog_waiter *waiter) {
        struct catalog_entry *entry = entry_find(catalog, name);

        if (!entry || catalog->is_ending)
                return 0;
        joined_drop_unused(catalog);
        entry_check(entry);
        if (!entry->is_checking)
                return 0;
        waiter->since_ns = clock_now_ns();
        TAILQ_INSERT_TAIL(&entry->waiters, waiter, entry);
        return 1;
}

void catalog_wake_late(struct catalog *catalog) {
        struct catalog_entry *entry;
        struct catalog_waiter *waiter, *next;
        uint64_t now_ns = clock_now_ns();

        TAILQ_FOREACH(entry, &catalog->entries, entry)
                TAILQ_FOREACH_SAFE(waiter, &entry->waiters, entry, next)
                        if (now_ns - waiter->since_ns >= PATIENCE_NS) {
                                TAILQ_REMOVE(&entry->waiters, waiter, entry);
                                waiter->done(waiter, true);
                        }
}
