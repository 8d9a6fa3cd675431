#include "daemon/base/bitmap.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#define WORD_BITS 64u

static uint64_t n_bytes(const struct bitmap *bitmap) {
        return (bitmap->n_bits + WORD_BITS - 1) / WORD_BITS * sizeof(uint64_t);
}

int bitmap_init(struct bitmap *bitmap, uint64_t n_bits) {
        void *words;

        *bitmap = (struct bitmap){ .n_bits = n_bits };
        if (n_bits == 0)
                return 0;
        words = mmap(NULL, n_bytes(bitmap), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (words == MAP_FAILED)
                return -errno;
        bitmap->words = words;
        return 0;
}

void bitmap_fini(struct bitmap *bitmap) {
        if (bitmap->words)
                munmap(bitmap->words, n_bytes(bitmap));
        *bitmap = (struct bitmap){ 0 };
}

bool bitmap_add(struct bitmap *bitmap, uint64_t number) {
        uint64_t bit = 1ull << number % WORD_BITS, *word;

        if (!bitmap->words || number >= bitmap->n_bits)
                return false;
        word = &bitmap->words[number / WORD_BITS];
        if (*word & bit)
                return false;
        *word |= bit;
        return true;
}

bool bitmap_has(const struct bitmap *bitmap, uint64_t number) {
        return bitmap->words && number < bitmap->n_bits &&
               (bitmap->words[number / WORD_BITS] >> number % WORD_BITS & 1) != 0;
}
