/* data/ledger/ledger_book.h: the damaged samples of a dataset, in memory.
 *
 * In the order in which they were met first, so that whoever goes through it page by page misses none that was there
 * when he began. The caller locks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/bitmap.h"
#include "daemon/data/ledger/ledger_line.h"

#define LEDGER_ENTRIES_MAX 100000u /* about 20 MB of file; who has more has another problem than finding them */

enum ledger_state {
        LEDGER_WRITTEN,  /* the file has the same */
        LEDGER_REPEATED, /* met again since: the count in the file is too low */
        LEDGER_NEW,      /* the file does not know it */
};

struct ledger_kept;

struct ledger_book {
        struct ledger_kept *kept;
        uint32_t n_kept, capacity;
        uint32_t *places; /* of each sample in `kept`, plus 1; a power of two of them, at most half full */
        uint32_t n_places;
        struct bitmap met;
        uint64_t n_met; /* samples, those beyond LEDGER_ENTRIES_MAX too */
};

/* 0 or -ENOMEM. Fini takes a half-built one. */
int ledger_book_init(struct ledger_book *book, uint64_t n_samples);
void ledger_book_fini(struct ledger_book *book);

/* Outcomes of ledger_book_meet(). */
enum {
        LEDGER_BOOK_KNOWN, /* counted once more; or beyond the limit already */
        LEDGER_BOOK_ADDED,
        LEDGER_BOOK_FULL, /* the first one beyond the limit: this and what follows is only counted */
};

/* The sample was met now, with this field damaged ("": not known which). -ENOMEM: not remembered. */
int ledger_book_meet(struct ledger_book *book, uint64_t sample, const char *field, const char *error, int64_t now_unix);

/* As the file says; a later line about a sample replaces an earlier one. 0; -ERANGE no such sample; -ENOSPC; -ENOMEM.
 */
int ledger_book_put(struct ledger_book *book, const struct ledger_entry *entry);

/* Entry `idx`. False after the last one. */
bool ledger_book_at(const struct ledger_book *book, uint64_t idx, struct ledger_entry *ret_entry);

/* The next entry from `*idx` on whose state is at least `at_least`; marks it as written and moves *idx past it. False
 * if there is none. */
bool ledger_book_take(struct ledger_book *book, enum ledger_state at_least, uint32_t *idx,
                      struct ledger_entry *ret_entry);

/* Writing failed, or the file is gone: it knows none of them. */
void ledger_book_unwrite(struct ledger_book *book);
