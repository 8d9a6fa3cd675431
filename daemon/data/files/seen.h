/* data/files/seen.h: how many bytes of all files of a dataset an index pass has seen, and of how many.
 *
 * What a file's length is, is known once it is opened. Until all are, those that were opened speak for the others: so
 * the total may change on the way. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/data/format.h"

struct seen {
        uint64_t n_files;         /* of the dataset */
        _Atomic uint64_t n_begun; /* of them */
        _Atomic uint64_t n_known; /* bytes of these */
        _Atomic uint64_t n_bytes; /* of them, that were seen */
};

/* A pass over n_files files begins. */
void seen_begin(struct seen *seen, uint64_t n_files);

/* A file of n_bytes bytes was opened. Any thread. */
void seen_file(struct seen *seen, uint64_t n_bytes);

/* So many more bytes were seen. Any thread. */
void seen_add(struct seen *seen, uint64_t n_bytes);

/* Of one thread that reads file after file: it is at byte `at` of the one that was opened last, which has n_bytes. */
void seen_at(struct seen *seen, uint64_t n_bytes, uint64_t at);

/* Tells the watch, which may be NULL. On the thread that may tell. */
void seen_tell(const struct seen *seen, const struct index_watch *watch);
