/* store/cache/unpack_gzip.h: the plain bytes of a file of gzip. libarchive, which unpacks all others, does not look at
 * gzip's checksums. Private to this folder. */
#pragma once

#include "daemon/store/cache/unpack_file.h"

/* By its first bytes. */
bool unpack_is_gzip(const uint8_t *bytes, size_t n_bytes);

/* As unpack_file_run(). Zeros after the last member are no error: tapes and some writers fill up with them. */
int unpack_gzip_run(const struct unpack_file *file, uint64_t *ret_n_bytes, struct why *why);
