/* data/ledger/ledger_file.h: a ledger's file, read and appended to. Blocks as files do; one thread. */
#pragma once

#include <pthread.h>

#include "daemon/data/index/index.h"
#include "daemon/data/ledger/ledger_book.h"
#include "proto/base/why.h"

struct ledger_file {
        char path[PATH_MAX];
        const char *digest; /* that it must be of */
        const struct source *index;
        struct ledger_book *book;
        pthread_mutex_t *lock; /* guards `book`; not held while the disk is waited for */
};

/* Positive outcome of ledger_file_load(). */
#define LEDGER_PUT_ASIDE 1

/* Reads it into the book, and rewrites it if most of it is repetition. 0, also if there is none; LEDGER_PUT_ASIDE: it
 * was of another content, or no ledger, and is NAME.errors.old now (`why` says so); or an errno. */
int ledger_file_load(struct ledger_file *file, struct why *why);

/* Appends the entries that the file lacks. Returns 0 or an errno; then the file is unchanged, and the book knows it.
 * -ESTALE: the file is now that of another content. */
int ledger_file_append(struct ledger_file *file, enum ledger_state at_least, struct why *why);
