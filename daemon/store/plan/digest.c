#include "daemon/store/plan/digest.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <unistd.h>
#include <xxhash.h>
#ifdef __x86_64__
#include <xxh_x86dispatch.h> /* AVX2 or AVX-512 where the CPU has them; the same digests */
#endif

#define READ_BYTES 65536u

/* OpenSSL's digests fail only without memory, and they allocate none after init. */
static void must(int r) {
        assert(r == 1);
        (void)r;
}

int sha256_init(struct sha256 *sha) {
        EVP_MD_CTX *context = EVP_MD_CTX_new();

        if (!context)
                return -ENOMEM;
        if (EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
                EVP_MD_CTX_free(context);
                return -ENOMEM;
        }
        sha->context = context;
        return 0;
}

void sha256_fini(struct sha256 *sha) {
        EVP_MD_CTX_free(sha->context);
        sha->context = NULL;
}

void sha256_restart(struct sha256 *sha) {
        must(EVP_DigestInit_ex(sha->context, NULL, NULL));
}

void sha256_add(struct sha256 *sha, const void *bytes, size_t n_bytes) {
        must(EVP_DigestUpdate(sha->context, bytes, n_bytes));
}

void sha256_end(struct sha256 *sha, uint8_t ret_digest[SHA256_BYTES]) {
        must(EVP_DigestFinal_ex(sha->context, ret_digest, NULL));
}

int sha256_file(struct sha256 *sha, int fd, uint64_t *ret_n_bytes, uint8_t ret_digest[SHA256_BYTES]) {
        uint8_t piece[READ_BYTES];
        uint64_t n_bytes = 0;
        ssize_t n;

        sha256_restart(sha);
        while ((n = read(fd, piece, sizeof(piece))) != 0) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                sha256_add(sha, piece, (size_t)n);
                n_bytes += (uint64_t)n;
        }
        sha256_end(sha, ret_digest);
        *ret_n_bytes = n_bytes;
        return 0;
}

void sha256_text(const uint8_t digest[SHA256_BYTES], char ret_text[SHA256_TEXT_SIZE]) {
        static const char DIGITS[] = "0123456789abcdef";

        for (size_t i = 0; i < SHA256_BYTES; i++) {
                ret_text[2 * i] = DIGITS[digest[i] >> 4];
                ret_text[2 * i + 1] = DIGITS[digest[i] & 15];
        }
        ret_text[2 * SHA256_BYTES] = '\0';
}

struct digest128 digest128_of(const void *bytes, size_t n_bytes) {
        XXH128_hash_t hash = XXH3_128bits(bytes, n_bytes);

        return (struct digest128){ .low = hash.low64, .high = hash.high64 };
}

uint64_t digest64_of(const void *bytes, size_t n_bytes, uint64_t seed) {
        return XXH3_64bits_withSeed(bytes, n_bytes, seed);
}
