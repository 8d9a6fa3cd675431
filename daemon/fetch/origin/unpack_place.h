/* fetch/origin/unpack_place.h: files come into a folder one by one: written under another name, hashed, renamed. No
 * link is ever followed on the way to them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/store/plan/digest.h"
#include "daemon/store/plan/lookup.h"
#include "proto/base/why.h"

struct unpack_place {
        struct lookup lookup; /* below the caller's folder */
        struct sha256 sha;
        char unfinished[64];

        /* The file that is being written. */
        int fd; /* -1: only hashed */
        uint64_t n_bytes;
};

int unpack_place_init(struct unpack_place *place, int root_fd, struct why *why);
void unpack_place_fini(struct unpack_place *place); /* removes what is unfinished */

/* Begins a file; `write` false: it is only hashed. */
int unpack_place_begin(struct unpack_place *place, bool write, struct why *why);

/* Its next bytes, at an offset that is not below what was there: what is left out is a hole of zeros. */
int unpack_place_bytes(struct unpack_place *place, uint64_t offset, const void *bytes, size_t n_bytes, struct why *why);

/* It has `n_bytes` in all: completes it and gives it its path. `mode`: the archive's. */
int unpack_place_end(struct unpack_place *place, const char *path, uint64_t n_bytes, mode_t mode,
                     uint8_t ret_sha256[SHA256_BYTES], struct why *why);

/* A symbolic link; its target was checked. */
int unpack_place_link(struct unpack_place *place, const char *path, const char *target, struct why *why);

/* Another name for a file that is there; hashes it anew. */
int unpack_place_hard_link(struct unpack_place *place, const char *path, const char *target, uint64_t *ret_n_bytes,
                           uint8_t ret_sha256[SHA256_BYTES], struct why *why);
