#include "daemon/codec/convert.h"

/* Two steps, each a loop that a compiler vectorises: elements to a common type of 64 bits, block by block, and from
 * there to the dtype that is wanted. Whole numbers meet as int64 (uint64 beyond that as double or refused), others as
 * double. Tokens and labels, which are stored in few bytes and wanted as int64 or int32, always fit: for them it is one
 * step. */

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/base/half.h"
#include "proto/layout.h"

#define BLOCK 256u

union block {
        int64_t whole[BLOCK];
        double real[BLOCK];
};

static bool is_real(uint32_t dtype) {
        return dtype == DLP_DTYPE_FLOAT16 || dtype == DLP_DTYPE_BFLOAT16 || dtype == DLP_DTYPE_FLOAT32 ||
               dtype == DLP_DTYPE_FLOAT64;
}

/* ---- to the common type ---------------------------------------------------------------------------------------- */

#define WIDEN(narrow, wide)                                                                                            \
        do {                                                                                                           \
                for (size_t i = 0; i < n; i++) {                                                                       \
                        narrow element;                                                                                \
                        wide number;                                                                                   \
                                                                                                                       \
                        memcpy(&element, from + i * sizeof(element), sizeof(element));                                 \
                        number = element;                                                                              \
                        memcpy(to + i * sizeof(number), &number, sizeof(number));                                      \
                }                                                                                                      \
        } while (0)

/* Returns false for dtypes that int32 does not contain. */
static bool widen_to_int32(uint32_t dtype, const uint8_t *restrict from, size_t n, uint8_t *restrict to) {
        switch (dtype) {
        case DLP_DTYPE_UINT8:
                WIDEN(uint8_t, int32_t);
                return true;
        case DLP_DTYPE_INT8:
                WIDEN(int8_t, int32_t);
                return true;
        case DLP_DTYPE_UINT16:
                WIDEN(uint16_t, int32_t);
                return true;
        case DLP_DTYPE_INT16:
                WIDEN(int16_t, int32_t);
                return true;
        default:
                return false;
        }
}

static void widen_to_int64(uint32_t dtype, const uint8_t *restrict from, size_t n, uint8_t *restrict to) {
        switch (dtype) {
        case DLP_DTYPE_BOOL:
                for (size_t i = 0; i < n; i++) {
                        int64_t truth = from[i] != 0;

                        memcpy(to + i * sizeof(truth), &truth, sizeof(truth));
                }
                break;
        case DLP_DTYPE_UINT8:
                WIDEN(uint8_t, int64_t);
                break;
        case DLP_DTYPE_INT8:
                WIDEN(int8_t, int64_t);
                break;
        case DLP_DTYPE_UINT16:
                WIDEN(uint16_t, int64_t);
                break;
        case DLP_DTYPE_INT16:
                WIDEN(int16_t, int64_t);
                break;
        case DLP_DTYPE_UINT32:
                WIDEN(uint32_t, int64_t);
                break;
        case DLP_DTYPE_INT32:
                WIDEN(int32_t, int64_t);
                break;
        default:
                memcpy(to, from, n * sizeof(int64_t));
        }
}

static double real_from_half(uint16_t bits) {
        double sign = bits >> 15 ? -1.0 : 1.0, fraction = bits & 0x3ff;
        int exponent = bits >> 10 & 0x1f;

        if (exponent == 31)
                return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
        return exponent == 0 ? sign * ldexp(fraction, -24) : sign * ldexp(fraction + 1024, exponent - 25);
}

static double real_from_bfloat16(uint16_t bits) {
        uint32_t wide = (uint32_t)bits << 16;
        float value;

        memcpy(&value, &wide, sizeof(value));
        return (double)value;
}

static void widen_real(uint32_t dtype, const uint8_t *from, size_t n, union block *block) {
        uint16_t bits;

        switch (dtype) {
        case DLP_DTYPE_FLOAT16:
        case DLP_DTYPE_BFLOAT16:
                for (size_t i = 0; i < n; i++) {
                        memcpy(&bits, from + i * sizeof(bits), sizeof(bits));
                        block->real[i] = dtype == DLP_DTYPE_FLOAT16 ? real_from_half(bits) : real_from_bfloat16(bits);
                }
                break;
        case DLP_DTYPE_FLOAT32: {
                float element;

                for (size_t i = 0; i < n; i++) {
                        memcpy(&element, from + i * sizeof(element), sizeof(element));
                        block->real[i] = (double)element;
                }
                break;
        }
        default:
                memcpy(block->real, from, n * sizeof(block->real[0]));
        }
}

/* ---- whole numbers --------------------------------------------------------------------------------------------- */

static int refuse_whole(int64_t number, uint32_t dtype, struct why *why) {
        return why_set(why, -ERANGE, "%lld does not fit %s", (long long)number, dlp_dtype_name(dtype));
}

#define NARROW(type, least, most)                                                                                      \
        do {                                                                                                           \
                for (size_t i = 0; i < n; i++) {                                                                       \
                        type element = (type)block->whole[i];                                                          \
                                                                                                                       \
                        is_fine &= block->whole[i] >= (int64_t)(least) && block->whole[i] <= (int64_t)(most);          \
                        memcpy(to + i * sizeof(element), &element, sizeof(element));                                   \
                }                                                                                                      \
        } while (0)

/* One pass that also tells whether all fit; which one does not is searched only then. */
static bool narrow_whole(uint32_t dtype, const union block *block, uint8_t *to, size_t n) {
        bool is_fine = true;

        switch (dtype) {
        case DLP_DTYPE_BOOL:
                for (size_t i = 0; i < n; i++)
                        to[i] = block->whole[i] != 0;
                break;
        case DLP_DTYPE_UINT8:
                NARROW(uint8_t, 0, UINT8_MAX);
                break;
        case DLP_DTYPE_INT8:
                NARROW(int8_t, INT8_MIN, INT8_MAX);
                break;
        case DLP_DTYPE_UINT16:
                NARROW(uint16_t, 0, UINT16_MAX);
                break;
        case DLP_DTYPE_INT16:
                NARROW(int16_t, INT16_MIN, INT16_MAX);
                break;
        case DLP_DTYPE_UINT32:
                NARROW(uint32_t, 0, UINT32_MAX);
                break;
        case DLP_DTYPE_INT32:
                NARROW(int32_t, INT32_MIN, INT32_MAX);
                break;
        case DLP_DTYPE_UINT64:
                NARROW(uint64_t, 0, INT64_MAX);
                break;
        default:
                memcpy(to, block->whole, n * sizeof(block->whole[0]));
        }
        return is_fine;
}

static void whole_to_real(union block *block, size_t n) {
        for (size_t i = 0; i < n; i++)
                block->real[i] = (double)block->whole[i];
}

/* ---- floats ---------------------------------------------------------------------------------------------------- */

static uint32_t float_bits(double number) {
        float value = (float)number;
        uint32_t bits;

        memcpy(&bits, &value, sizeof(bits));
        return bits;
}

/* A double is rounded to float first and then to 16 bits: twice, as torch does it too. */
static void narrow_real(uint32_t dtype, const union block *block, uint8_t *to, size_t n) {
        for (size_t i = 0; i < n; i++) {
                uint32_t bits = float_bits(block->real[i]);
                uint16_t half = dtype == DLP_DTYPE_FLOAT16 ? half_from_float32(bits) : bfloat16_from_float32(bits);

                if (dtype == DLP_DTYPE_FLOAT64)
                        memcpy(to + i * sizeof(double), &block->real[i], sizeof(double));
                else if (dtype == DLP_DTYPE_FLOAT32)
                        memcpy(to + i * sizeof(bits), &bits, sizeof(bits));
                else
                        memcpy(to + i * sizeof(half), &half, sizeof(half));
        }
}

/* Without the fraction. */
static int real_to_whole(union block *block, uint32_t dtype, size_t n, struct why *why) {
        for (size_t i = 0; i < n; i++) {
                double number = block->real[i];

                if (dtype == DLP_DTYPE_BOOL)
                        block->whole[i] = number != 0;
                else if (!(number >= -0x1p63 && number < 0x1p63))
                        return why_set(why, -ERANGE, "%g does not fit %s", number, dlp_dtype_name(dtype));
                else
                        block->whole[i] = (int64_t)number;
        }
        return 0;
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

/* uint64 is the one dtype that int64 does not contain. */
static int convert_uint64(const uint8_t *from, uint32_t to_dtype, uint8_t *to, size_t n, struct why *why) {
        for (size_t i = 0; i < n; i++) {
                union block one;
                uint64_t number;

                memcpy(&number, from + i * sizeof(number), sizeof(number));
                if (is_real(to_dtype)) {
                        one.real[0] = (double)number;
                        narrow_real(to_dtype, &one, to + i * dlp_dtype_bytes(to_dtype), 1);
                        continue;
                }
                one.whole[0] = to_dtype == DLP_DTYPE_BOOL ? number != 0 : (int64_t)number;
                if (one.whole[0] < 0 || !narrow_whole(to_dtype, &one, to + i * dlp_dtype_bytes(to_dtype), 1))
                        return why_set(why, -ERANGE, "%llu does not fit %s", (unsigned long long)number,
                                       dlp_dtype_name(to_dtype));
        }
        return 0;
}

static int convert_block(uint32_t from_dtype, const uint8_t *from, uint32_t to_dtype, uint8_t *to, size_t n,
                         struct why *why) {
        union block block;
        int r = 0;

        if (is_real(from_dtype)) {
                widen_real(from_dtype, from, n, &block);
                if (!is_real(to_dtype))
                        r = real_to_whole(&block, to_dtype, n, why);
        } else {
                widen_to_int64(from_dtype, from, n, (uint8_t *)block.whole);
                if (is_real(to_dtype))
                        whole_to_real(&block, n);
        }
        if (r < 0)
                return r;
        if (is_real(to_dtype)) {
                narrow_real(to_dtype, &block, to, n);
        } else if (!narrow_whole(to_dtype, &block, to, n)) {
                uint8_t element[8];
                size_t i = 0;

                while (narrow_whole(to_dtype, (const union block *)(const void *)&block.whole[i], element, 1))
                        i++;
                return refuse_whole(block.whole[i], to_dtype, why);
        }
        return 0;
}

int convert(uint32_t from_dtype, const void *from, uint32_t to_dtype, void *to, size_t n, struct why *why) {
        size_t from_size = dlp_dtype_bytes(from_dtype), to_size = dlp_dtype_bytes(to_dtype);
        int r = 0;

        assert(from_dtype != DLP_DTYPE_BYTES && from_dtype < DLP_DTYPE_TEXT);
        assert(to_dtype != DLP_DTYPE_BYTES && to_dtype < DLP_DTYPE_TEXT);
        if (n == 0)
                return 0; /* an empty value may have no memory at all */
        if (from_dtype == to_dtype && from_dtype != DLP_DTYPE_BOOL) {
                memcpy(to, from, n * from_size);
                return 0;
        }
        if (from_dtype == DLP_DTYPE_UINT64)
                return convert_uint64(from, to_dtype, to, n, why);
        if (to_dtype == DLP_DTYPE_INT64 && !is_real(from_dtype)) {
                widen_to_int64(from_dtype, from, n, to);
                return 0;
        }
        if (to_dtype == DLP_DTYPE_INT32 && widen_to_int32(from_dtype, from, n, to))
                return 0;
        for (size_t at = 0; at < n && r == 0; at += BLOCK)
                r = convert_block(from_dtype, (const uint8_t *)from + at * from_size, to_dtype,
                                  (uint8_t *)to + at * to_size, n - at < BLOCK ? n - at : BLOCK, why);
        return r;
}
