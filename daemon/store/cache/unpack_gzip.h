/* store/cache/unpack_gzip.h: the plain bytes of a file of gzip. libarchive, which unpacks all others, does not look at
 * gzip's checksums. Private to this folder. */
#pragma once

#include "daemon/store/cache/unpack_file.h"

struct gunzipping;

/* By its first bytes. */
bool unpack_is_gzip(const uint8_t *bytes, size_t n_bytes);

/* As the functions of unpack_file.h. Zeros after the last member are no error: tapes and some writers fill up with
 * them. `file` is the caller's. */
int gunzip_begin(const struct unpack_file *file, struct gunzipping **ret_now, struct why *why);
int gunzip_go_on(struct gunzipping *now, uint64_t n_bytes, struct why *why);
uint64_t gunzip_n_bytes(const struct gunzipping *now);
void gunzip_end(struct gunzipping *now); /* NULL is fine */
