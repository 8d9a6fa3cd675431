/* augment/noise_avx2.c: sixteen blocks of Philox at once. A register holds one of the four words of eight blocks. */
#include "daemon/augment/noise.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define INLINE __attribute__((target("avx2"), always_inline)) static inline
#define AVX2   __attribute__((target("avx2"))) static

#define AT_ONCE       16u /* blocks */
#define WORDS_AT_ONCE (4 * AT_ONCE)
#define N_ROUNDS      10

/* The constants of proto/order/philox.c. */
#define MULTIPLIER_0 0xd2511f53u
#define MULTIPLIER_1 0xcd9e8d57u
#define WEYL_0       0x9e3779b9u
#define WEYL_1       0xbb67ae85u

struct words {
        __m256i a, b, c, d;
};

INLINE __m256i all(uint32_t word) {
        return _mm256_set1_epi32((int32_t)word);
}

/* Products of 64 bits are made of every second word at a time. */
INLINE void multiply(__m256i words, __m256i by, __m256i *ret_low, __m256i *ret_high) {
        __m256i even = _mm256_mul_epu32(words, by), odd = _mm256_mul_epu32(_mm256_srli_epi64(words, 32), by);

        *ret_low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
        *ret_high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}

struct keys {
        __m256i first[N_ROUNDS], second[N_ROUNDS];
};

INLINE void make_keys(const struct dlp_philox *philox, struct keys *ret_keys) {
        for (uint32_t round = 0; round < N_ROUNDS; round++) {
                ret_keys->first[round] = all(philox->key[0] + round * WEYL_0);
                ret_keys->second[round] = all(philox->key[1] + round * WEYL_1);
        }
}

INLINE struct words round_of(struct words words, __m256i key_0, __m256i key_1) {
        __m256i low_0, high_0, low_1, high_1;

        multiply(words.a, all(MULTIPLIER_0), &low_0, &high_0);
        multiply(words.c, all(MULTIPLIER_1), &low_1, &high_1);
        return (struct words){ .a = _mm256_xor_si256(_mm256_xor_si256(high_1, words.b), key_0),
                               .b = low_1,
                               .c = _mm256_xor_si256(_mm256_xor_si256(high_0, words.d), key_1),
                               .d = low_0 };
}

INLINE void store(uint32_t *out, __m256i pairs_low, __m256i pairs_high) {
        _mm256_storeu_si256((__m256i *)(void *)out, _mm256_permute2x128_si256(pairs_low, pairs_high, 0x20));
        _mm256_storeu_si256((__m256i *)(void *)(out + 16), _mm256_permute2x128_si256(pairs_low, pairs_high, 0x31));
}

/* Word by word to block by block. */
INLINE void store_blocks(struct words words, uint32_t *out) {
        __m256i ab_low = _mm256_unpacklo_epi32(words.a, words.b), ab_high = _mm256_unpackhi_epi32(words.a, words.b);
        __m256i cd_low = _mm256_unpacklo_epi32(words.c, words.d), cd_high = _mm256_unpackhi_epi32(words.c, words.d);

        store(out, _mm256_unpacklo_epi64(ab_low, cd_low), _mm256_unpackhi_epi64(ab_low, cd_low));
        store(out + 8, _mm256_unpacklo_epi64(ab_high, cd_high), _mm256_unpackhi_epi64(ab_high, cd_high));
}

INLINE struct words counters(const struct dlp_philox *philox, uint32_t n_before) {
        __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);

        return (struct words){ .a = _mm256_add_epi32(all(philox->counter[0] + n_before), places),
                               .b = all(philox->counter[1]),
                               .c = all(philox->counter[2]),
                               .d = all(philox->counter[3]) };
}

/* Two in turns, as each waits for its own products. */
AVX2 size_t make_blocks(const struct dlp_philox *philox, uint32_t *words, size_t n_blocks) {
        struct keys keys;
        size_t i = 0;

        make_keys(philox, &keys);
        for (; i + AT_ONCE <= n_blocks; i += AT_ONCE, words += (size_t)WORDS_AT_ONCE) {
                struct words one = counters(philox, (uint32_t)i), two = counters(philox, (uint32_t)i + AT_ONCE / 2);

                for (uint32_t round = 0; round < N_ROUNDS; round++) {
                        one = round_of(one, keys.first[round], keys.second[round]);
                        two = round_of(two, keys.first[round], keys.second[round]);
                }
                store_blocks(one, words);
                store_blocks(two, words + WORDS_AT_ONCE / 2);
        }
        return i;
}

size_t noise_blocks_avx2(const struct dlp_philox *philox, uint32_t *words, size_t n_blocks) {
        return __builtin_cpu_supports("avx2") ? make_blocks(philox, words, n_blocks) : 0;
}

#else

size_t noise_blocks_avx2(const struct dlp_philox *philox, uint32_t *words, size_t n_blocks) {
        return 0;
}

#endif
