/* pipeline/catalog.h: the datasets of the configuration, opened in the background, shared by all who are served from
 * them. Main thread, but for references. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/background.h"
#include "daemon/base/queue.h"
#include "daemon/base/why.h"
#include "daemon/data/dataset.h"
#include "daemon/data/ledger.h"

enum catalog_state {
        CATALOG_CLOSED,   /* not looked at yet */
        CATALOG_INDEXING, /* its index is being opened or built */
        CATALOG_READY,
        CATALOG_FAILED, /* `text` says why; the next attach tries again */
};

/* An open dataset; lives until the last who is served from it lets go. */
struct catalog_dataset {
        struct dataset *dataset;
        struct ledger *ledger; /* of its damaged samples */
        char name[DLP_NAME_MAX];
        _Atomic uint32_t refs;

        /* What went wrong with samples since it was opened, each time counted. Any worker. */
        pthread_mutex_t lock; /* guards last_error; a leaf */
        _Atomic uint64_t n_errors;
        struct why last_error;
};

struct catalog_entry {
        TAILQ_ENTRY(catalog_entry) entry;
        char name[DLP_NAME_MAX];
        char *path;
        char format[32];
        enum catalog_state state;
        struct catalog_dataset *open; /* READY: one reference */
        struct why text;              /* how it was opened, or why it was not */
        _Atomic uint64_t n_files;     /* INDEXING: found so far */
        _Atomic bool cancelled;       /* INDEXING: stop */
        uint64_t failed_at_ns;        /* FAILED */
        bool was_told;                /* FAILED: somebody has been told; the next to ask begins a new try */
        bool is_wanted;               /* false: gone from the configuration, freed when the index thread is back */
        struct catalog *catalog;
};

struct catalog {
        TAILQ_HEAD(, catalog_entry) entries;
        struct background *background;
        struct ledgers *ledgers;
        char *index_dir;
};

struct catalog_wish {
        const char *name, *path, *format;
};

int catalog_init(struct catalog *catalog, struct background *background, const char *index_dir);

/* Ends index building; the next thing must be background_stop(). */
void catalog_cancel(struct catalog *catalog);

/* Frees all and writes the ledgers; the background must have been stopped before, and no reference be left. */
void catalog_fini(struct catalog *catalog);

/* Makes the entries equal to the wishes: those that are new are opened, those that are gone or changed are let go (who
 * is served from them stays so). Also looks whether the folders of the others have changed. */
int catalog_configure(struct catalog *catalog, const struct catalog_wish *wishes, size_t n_wishes, struct why *why);

/* A reference to an open dataset. If nobody is served from it, looks first whether its folder has changed. -ENOENT no
 * such dataset (names the known ones), -EAGAIN it is being indexed (says how far), -EIO it could not be opened (says
 * why; asking begins a new try). */
int catalog_get(struct catalog *catalog, const char *name, struct catalog_dataset **ret_dataset, struct why *why);

struct catalog_dataset *catalog_dataset_ref(struct catalog_dataset *dataset);
void catalog_dataset_unref(struct catalog_dataset *dataset);

/* Remembers and counts something that went wrong with a sample; returns how many there were before. Any thread. */
uint64_t catalog_dataset_error(struct catalog_dataset *dataset, const char *text);

/* An entry by its name, or NULL and which there are. */
struct catalog_entry *catalog_find(struct catalog *catalog, const char *name, struct why *why);

const char *catalog_state_name(enum catalog_state state);
