/* fetch/origin/hub_listing.h: a page of a hub's tree, as JSON: an array of files and folders.
 *
 * The hub is a stranger: what is not as its protocol says is refused. A file of Git LFS has the SHA-256 of its content,
 * any other the id of its blob, which the hub says again as its ETag. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"

#define HUB_PATH_MAX 4096u /* bytes */

struct hub_entry {
        const char *path; /* in the repository, plain */
        bool is_file;     /* else a folder */
        uint64_t n_bytes;
        const uint8_t *sha256; /* 32 bytes; NULL: not of LFS */
        const char *etag;      /* quotes and all; NULL: of LFS */
};

/* Calls `entry` for each in order; a negative return ends it and is returned. Returns 0, or -EINVAL with `why` for
 * anything that is not a listing. */
int hub_listing_parse(const char *json, size_t n_bytes, int (*entry)(void *userdata, const struct hub_entry *entry),
                      void *userdata, struct why *why);
