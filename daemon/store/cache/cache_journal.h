/* store/cache/cache_journal.h: which chunks of an origin are in its folder, with a digest of each.
 *
 * A file of records of 32 bytes after a header; a record says that a chunk is there, or no longer. It is written after
 * the chunk, so after a kill it never says more than there is. After a power cut it may: bytes and records reach the
 * disk in any order. So a record marks where a boot of the machine begins; what was noted before the last such mark is
 * compared with its digest before it is served, and then noted again.
 *
 * Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"

enum journal_kind {
        JOURNAL_THERE,
        JOURNAL_GONE,
        JOURNAL_SEEN, /* it was noted before this boot, and has the digest */
        JOURNAL_BOOT, /* the digest is of the boot's id */
};

struct journal_record {
        uint64_t chunk;
        uint64_t n_bytes : 56;
        uint64_t kind : 8; /* enum journal_kind */
        uint64_t digest;   /* XXH3 of the chunk's bytes */
        uint64_t check;    /* of the members before */
};

struct cache_journal {
        int fd;       /* -1: closed */
        uint64_t end; /* bytes */
};

/* Of a record: was it noted in this boot? */
typedef void (*journal_take)(void *userdata, const struct journal_record *record, bool is_of_boot);

/* Opens or begins PATH. What belongs to another listing is not taken: `listing` is its digest (64 digits). take() is
 * called for each record of a chunk, in their order. A record that is torn ends the file. Returns 0 or an errno with
 * `why`. */
int cache_journal_open(struct cache_journal *journal, const char *path, const char *listing, journal_take take,
                       void *userdata, struct why *why);

/* Appends; the check is set here. 0 or an errno. */
int cache_journal_add(struct cache_journal *journal, struct journal_record *record);

/* Appends a mark of this boot: what was noted until now is compared before it is served. 0 or an errno. */
int cache_journal_mark(struct cache_journal *journal);

/* Nothing of it is known any more: for who cannot note, on a full disk, that something has gone. */
void cache_journal_forget(struct cache_journal *journal);

/* How many records it has, marks too. */
uint64_t cache_journal_records(const struct cache_journal *journal);

void cache_journal_close(struct cache_journal *journal);

/* Is it one at all? Another program's file may be called the same. */
bool cache_journal_is_one(const char *path);

/* What a journal's chunks have in bytes together, for a folder whose origin nobody has opened. 0 if it cannot be read.
 */
uint64_t cache_journal_bytes(const char *path);
