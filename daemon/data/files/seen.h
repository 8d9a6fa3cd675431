/* data/files/seen.h: how many bytes of a dataset's files an index pass has seen, and how many there are in all.
 *
 * A file's length is known once it is opened. Until all are opened, the total is estimated from those that were, so it
 * may change on the way. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/data/format.h"

struct seen {
        uint64_t n_files;         /* of the dataset */
        _Atomic uint64_t n_begun; /* files that were opened */
        _Atomic uint64_t n_known; /* bytes that these have */
        _Atomic uint64_t n_bytes; /* and that were seen of them */
};

/* A pass over n_files files begins. */
void seen_begin(struct seen *seen, uint64_t n_files);

/* A file of n_bytes bytes was opened. Any thread. */
void seen_file(struct seen *seen, uint64_t n_bytes);

/* So many more bytes were seen. Any thread. */
void seen_add(struct seen *seen, uint64_t n_bytes);

/* For one thread that reads file after file: it is at byte `at` of the file that it opened last, which has n_bytes. */
void seen_at(struct seen *seen, uint64_t n_bytes, uint64_t at);

/* Tells the watch, which may be NULL. On the thread that may tell. */
void seen_tell(const struct seen *seen, const struct index_watch *watch);
