/* base/keyed_hash.h: the places of texts in tables in memory.
 *
 * Texts come from files, and who writes a file may choose texts that a known function sends to one place: then each
 * search looks at all of them. The key is another one in each process, so a result never leaves it. Each step
 * multiplies to 128 bits and folds these: with one of 64 bits, pairs of words exist that cancel each other under every
 * key. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern uint64_t KEYED_HASH_KEY[2]; /* random since before main() */

static inline uint64_t keyed_hash_step(uint64_t hash, uint64_t word) {
        unsigned __int128 product = (unsigned __int128)(hash ^ word) * KEYED_HASH_KEY[1];

        return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t keyed_hash(const void *bytes, size_t n_bytes) {
        uint64_t hash = keyed_hash_step(KEYED_HASH_KEY[0], n_bytes), word;
        const uint8_t *at = bytes;

        for (; n_bytes >= sizeof(word); n_bytes -= sizeof(word), at += sizeof(word)) {
                memcpy(&word, at, sizeof(word));
                hash = keyed_hash_step(hash, word);
        }
        word = 0;
        for (size_t i = 0; i < n_bytes; i++)
                word = word << 8 | at[i];
        return keyed_hash_step(keyed_hash_step(hash, word), KEYED_HASH_KEY[0]);
}
