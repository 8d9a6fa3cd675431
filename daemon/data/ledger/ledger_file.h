/* data/ledger/ledger_file.h: reads the file of a ledger and appends to it. Blocks as files do; one thread. */
#pragma once

#include <pthread.h>

#include "daemon/data/index/index.h"
#include "daemon/data/ledger/ledger_book.h"
#include "proto/base/why.h"

struct ledger_file {
        char path[PATH_MAX];
        const char *digest; /* that the file must have */
        const struct source *index;
        struct ledger_book *book;
        pthread_mutex_t *lock; /* guards `book`; not held during disk access */
};

/* Positive outcome of ledger_file_load(). */
#define LEDGER_PUT_ASIDE 1

/* Reads the file into the book, and rewrites it if most of its lines are repetitions. Returns 0, also if there is no
 * file; LEDGER_PUT_ASIDE if it belonged to another content or was not a ledger, and is now NAME.errors.old (`why` says
 * so); or an errno. */
int ledger_file_load(struct ledger_file *file, struct why *why);

/* Appends the entries that the file lacks. Returns 0 or an errno; after an errno the file is unchanged, and the book
 * knows that. -ESTALE: the file now belongs to another content. */
int ledger_file_append(struct ledger_file *file, enum ledger_state at_least, struct why *why);
