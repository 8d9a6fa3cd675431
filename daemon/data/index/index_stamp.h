/* data/index/index_stamp.h: what is known of a directory or file that an index is made of: that it rested before it was
 * read, and marks of its bytes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* The status of a directory or file that will be read next. What changed a moment ago could change again without
 * getting another time, and the index would look current for ever. So its time must be a little in the past, and this
 * waits for that. `settled_ns` adds up all time waited, which is bounded. Returns 0 or an errno. */
int index_settle(int fd, int64_t *settled_ns, struct stat *ret_status);

/* Is it as it was a moment ago, while the index was being made? Files of an origin are, however their times change:
 * they are filled, and who changed them there is told by the listing. */
bool index_is_unchanged(const struct stat *was, const struct stat *is);

/* A number of n_bytes bytes of a file that others hardly have: made of all of them if they are few, else of n_pieces
 * pieces (2 or more) of 4 KiB, from the first bytes to the last. Returns 0; -ENODATA if the file has become shorter; or
 * another errno. */
int index_mark(int fd, uint64_t begin, uint64_t n_bytes, uint64_t n_pieces, uint64_t *ret_mark);
