#include "daemon/decode/flac/rests.h"

#include <errno.h>

#define RICE_BITS_MAX 30u        /* of the lower part of a number */
#define QUOTIENT_MAX  (1u << 29) /* of its upper part; a correct one has fewer than 26 bits */
#define GROUP_MAX     4u

typedef int read_rice_fn(struct flac_bits *bits, uint32_t n_low, int32_t *rests, uint32_t n);

static inline int32_t with_sign(uint32_t value) {
        return (int32_t)(value >> 1 ^ -(value & 1));
}

/* Rice's code: the upper part in unary, then n_low bits; the sign is the lowest bit. */
static int rests_read_one(struct flac_bits *bits, uint32_t n_low, int32_t *ret_rest) {
        int64_t quotient = bits_get_unary(bits, QUOTIENT_MAX);

        if (quotient < 0)
                return -EBADMSG;
        *ret_rest = with_sign((uint32_t)quotient << n_low | bits_get(bits, n_low));
        return 0;
}

/* Numbers that fit between two refills are read together. That they did is seen afterwards: a number is far larger than
 * its neighbours so rarely that reading the group again costs less than looking at each. `n_group` is a constant. */
static inline __attribute__((always_inline)) int rests_read_groups(struct flac_bits *bits, uint32_t n_low,
                                                                   int32_t *rests, uint32_t n, uint32_t n_group) {
        uint32_t i = 0;

        for (; n - i >= n_group; i += n_group) {
                uint32_t n_used = 0;
                uint64_t next;

                flac_bits_refill(bits);
                next = bits->next;
#pragma GCC unroll 4
                for (uint32_t k = 0; k < n_group; k++) {
                        uint32_t n_zeroes = (uint32_t)__builtin_clzll(next | 1), n_number = n_zeroes + 1 + n_low;
                        uint32_t low = (uint32_t)(next << n_zeroes << 1 >> 1 >> (63 - n_low));

                        rests[i + k] = with_sign(n_zeroes << n_low | low);
                        next <<= n_number & 63;
                        n_used += n_number;
                }
                if (n_used <= BITS_AT_LEAST) {
                        bits->next = next;
                        bits->n_bits -= n_used;
                        continue;
                }
                for (uint32_t k = 0; k < n_group; k++)
                        if (rests_read_one(bits, n_low, &rests[i + k]) < 0)
                                return -EBADMSG;
        }
        for (; i < n; i++)
                if (rests_read_one(bits, n_low, &rests[i]) < 0)
                        return -EBADMSG;
        return 0;
}

static inline __attribute__((always_inline)) int read_rice(struct flac_bits *bits, uint32_t n_low, int32_t *rests,
                                                           uint32_t n) {
        struct flac_bits local = *bits; /* which stays in registers */
        int r;

        if (n_low <= 9) /* four numbers with quotients of 4 on average */
                r = rests_read_groups(&local, n_low, rests, n, GROUP_MAX);
        else if (n_low <= 14)
                r = rests_read_groups(&local, n_low, rests, n, 3);
        else if (n_low <= 22)
                r = rests_read_groups(&local, n_low, rests, n, 2);
        else
                r = rests_read_groups(&local, n_low, rests, n, 1);
        *bits = local;
        return r;
}

static int read_rice_anywhere(struct flac_bits *bits, uint32_t n_low, int32_t *rests, uint32_t n) {
        return read_rice(bits, n_low, rests, n);
}

#ifdef __x86_64__
/* Shifts that take their number from any register, and the count of zeroes in one step. */
__attribute__((target("bmi,bmi2,lzcnt"))) static int read_rice_bmi2(struct flac_bits *bits, uint32_t n_low,
                                                                    int32_t *rests, uint32_t n) {
        return read_rice(bits, n_low, rests, n);
}

static read_rice_fn *rests_choose(void) {
        /* Compilers differ in whether they can ask for LZCNT; every CPU with AVX2 and BMI2 has it. */
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") ? read_rice_bmi2 : read_rice_anywhere;
}
#else
static read_rice_fn *rests_choose(void) {
        return read_rice_anywhere;
}
#endif

static void read_plain(struct flac_bits *bits, uint32_t n_bits, int32_t *rests, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                rests[i] = n_bits ? bits_get_signed(bits, n_bits) : 0;
}

int flac_rests_read(struct flac_bits *bits, uint32_t order, uint32_t n_frames, int32_t *rests) {
        uint32_t method = bits_get(bits, 2), k = bits_get(bits, 4); /* 2^k parts, which have a parameter each */
        uint32_t n_parameter = method == 0 ? 4 : 5, escape = (1u << n_parameter) - 1;
        uint32_t n_part = n_frames >> k, at = order;
        read_rice_fn *read = rests_choose();

        if (method > 1 || n_part << k != n_frames || n_part < order)
                return -EBADMSG;
        for (uint32_t part = 0; part < 1u << k; part++) {
                uint32_t parameter = bits_get(bits, n_parameter), n = (part + 1) * n_part - at;

                if (bits_are_over(bits))
                        return -EBADMSG;
                if (parameter == escape)
                        read_plain(bits, bits_get(bits, 5), rests + at, n);
                else if (parameter > RICE_BITS_MAX || read(bits, parameter, rests + at, n) < 0)
                        return -EBADMSG;
                at += n;
        }
        return 0;
}
