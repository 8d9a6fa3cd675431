/* store/plan/digest.h: the two digests of staging. SHA-256 is what origins and manifests say of a file; XXH3 with 128
 * bits, ten times as fast, is what the journal says of a chunk, against accidents alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES     32u
#define SHA256_TEXT_SIZE 65u

/* Of bytes that come piece by piece. One thread at a time. */
struct sha256 {
        void *context; /* NULL: not in use */
};

int sha256_init(struct sha256 *sha);  /* 0 or -ENOMEM */
void sha256_fini(struct sha256 *sha); /* {NULL} is fine */
void sha256_restart(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *bytes, size_t n_bytes);
void sha256_end(struct sha256 *sha, uint8_t ret_digest[SHA256_BYTES]); /* restart it before the next */

/* From where the descriptor stands to the end of the file. Restarts it before. Blocks as the disk does. An errno. */
int sha256_file(struct sha256 *sha, int fd, uint64_t *ret_n_bytes, uint8_t ret_digest[SHA256_BYTES]);

void sha256_text(const uint8_t digest[SHA256_BYTES], char ret_text[SHA256_TEXT_SIZE]);

/* All zero stands for "not known": 2^-128 that bytes have it. */
struct digest128 {
        uint64_t low, high;
};

struct digest128 digest128_of(const void *bytes, size_t n_bytes);

static inline bool digest128_is_known(struct digest128 digest) {
        return (digest.low | digest.high) != 0;
}

static inline bool digest128_equal(struct digest128 a, struct digest128 b) {
        return a.low == b.low && a.high == b.high;
}

/* 64 bits, for what is checked by itself: headers and records. */
uint64_t digest64_of(const void *bytes, size_t n_bytes, uint64_t seed);
