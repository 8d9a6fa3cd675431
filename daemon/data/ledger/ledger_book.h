/* data/ledger/ledger_book.h: the damaged samples of a dataset, in memory.
 *
 * They are kept in the order in which they were met first. So a reader that goes through the book page by page misses
 * no entry that was there when it began. The caller locks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/bitmap.h"
#include "daemon/data/ledger/ledger_line.h"

#define LEDGER_ENTRIES_MAX 100000u /* about 20 MB of file; with more damaged samples, a list of them does not help */

enum ledger_state {
        LEDGER_WRITTEN,  /* the file has this entry */
        LEDGER_REPEATED, /* met again since then: the count in the file is too low */
        LEDGER_NEW,      /* the file does not have it */
};

struct ledger_kept;

struct ledger_book {
        struct ledger_kept *kept;
        uint32_t n_kept, capacity;
        uint32_t *places; /* of each sample: its index in `kept` plus 1. A power of two of them, at most half used */
        uint32_t n_places;
        struct bitmap met;
        uint64_t n_met; /* samples, including those above LEDGER_ENTRIES_MAX */
};

/* Returns 0 or -ENOMEM. ledger_book_fini() takes a half-built one. */
int ledger_book_init(struct ledger_book *book, uint64_t n_samples);
void ledger_book_fini(struct ledger_book *book);

/* Outcomes of ledger_book_meet(). */
enum {
        LEDGER_BOOK_KNOWN, /* counted once more; or above the limit since before */
        LEDGER_BOOK_ADDED,
        LEDGER_BOOK_FULL, /* the first one above the limit: this one and later ones are only counted */
};

/* Records that the sample was met now, with this field damaged ("": not known which). -ENOMEM: it is not recorded. */
int ledger_book_meet(struct ledger_book *book, uint64_t sample, const char *field, const char *error, int64_t now_unix);

/* Adds an entry of the file; a later line about a sample replaces an earlier one. Returns 0; -ERANGE if the dataset
 * does not have the sample; -ENOSPC; -ENOMEM. */
int ledger_book_put(struct ledger_book *book, const struct ledger_entry *entry);

/* Entry `idx`. Returns false after the last one. */
bool ledger_book_at(const struct ledger_book *book, uint64_t idx, struct ledger_entry *ret_entry);

/* Finds the next entry, from `*idx` on, whose state is at least `at_least`, marks it as written and moves *idx past it.
 * Returns false if there is none. */
bool ledger_book_take(struct ledger_book *book, enum ledger_state at_least, uint32_t *idx,
                      struct ledger_entry *ret_entry);

/* Marks all entries as new: writing has failed, or the file is gone. */
void ledger_book_unwrite(struct ledger_book *book);
