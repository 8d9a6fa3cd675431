#include "daemon/data/formats/differing/number_types.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/half.h"
#include "proto/base/cleanup.h"

/* ---- types ------------------------------------------------------------------------------------------------------- */

static const struct {
        uint32_t dtype;
        bool is_float, is_signed;
        uint32_t n_bytes;
} TYPES[] = {
        { DLP_DTYPE_INT8, false, true, 1 },    { DLP_DTYPE_INT16, false, true, 2 },
        { DLP_DTYPE_INT32, false, true, 4 },   { DLP_DTYPE_INT64, false, true, 8 },
        { DLP_DTYPE_UINT8, false, false, 1 },  { DLP_DTYPE_UINT16, false, false, 2 },
        { DLP_DTYPE_UINT32, false, false, 4 }, { DLP_DTYPE_UINT64, false, false, 8 },
        { DLP_DTYPE_FLOAT16, true, true, 2 },  { DLP_DTYPE_FLOAT32, true, true, 4 },
        { DLP_DTYPE_FLOAT64, true, true, 8 },
};

#define N_TYPES ARRAY_SIZE(TYPES)

static size_t number_types_find_type(uint32_t dtype) {
        size_t i = 0;

        while (i < N_TYPES && TYPES[i].dtype != dtype)
                i++;
        return i;
}

static uint32_t number_types_find_dtype(bool is_signed, uint32_t n_bytes) {
        for (size_t i = 0; i < N_TYPES; i++)
                if (!TYPES[i].is_float && TYPES[i].is_signed == is_signed && TYPES[i].n_bytes == n_bytes)
                        return TYPES[i].dtype;
        return DLP_DTYPE_INT64;
}

uint32_t number_types_join(uint32_t one, uint32_t other) {
        size_t i = number_types_find_type(one), k = number_types_find_type(other), wide;

        if (one == other)
                return one;
        if (i == N_TYPES || k == N_TYPES)
                return NUMBER_TYPE_NONE;
        wide = TYPES[i].n_bytes > TYPES[k].n_bytes ? i : k;
        if (TYPES[i].is_float != TYPES[k].is_float)
                return DLP_DTYPE_FLOAT64;
        if (TYPES[i].is_float || TYPES[i].is_signed == TYPES[k].is_signed)
                return TYPES[wide].dtype;
        if (TYPES[i].n_bytes != TYPES[k].n_bytes && TYPES[wide].is_signed)
                return TYPES[wide].dtype;
        return number_types_find_dtype(true, 2 * TYPES[wide].n_bytes);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* A number, whatever its type. */
struct any_number {
        enum {
                SIGNED,
                UNSIGNED,
                FLOATING
        } sort;
        int64_t as_signed;
        uint64_t as_unsigned;
        double as_float;
};

#define READ(type, member, is)                                                                                         \
        do {                                                                                                           \
                type value;                                                                                            \
                memcpy(&value, bytes, sizeof(value));                                                                  \
                return (struct any_number){ .sort = (is), .member = value };                                           \
        } while (0)

static struct any_number number_types_read_number(uint32_t dtype, const void *bytes) {
        uint32_t bits;
        uint16_t half;
        float single;

        switch (dtype) {
        case DLP_DTYPE_INT8:
                READ(int8_t, as_signed, SIGNED);
        case DLP_DTYPE_INT16:
                READ(int16_t, as_signed, SIGNED);
        case DLP_DTYPE_INT32:
                READ(int32_t, as_signed, SIGNED);
        case DLP_DTYPE_INT64:
                READ(int64_t, as_signed, SIGNED);
        case DLP_DTYPE_UINT8:
                READ(uint8_t, as_unsigned, UNSIGNED);
        case DLP_DTYPE_UINT16:
                READ(uint16_t, as_unsigned, UNSIGNED);
        case DLP_DTYPE_UINT32:
                READ(uint32_t, as_unsigned, UNSIGNED);
        case DLP_DTYPE_UINT64:
                READ(uint64_t, as_unsigned, UNSIGNED);
        case DLP_DTYPE_FLOAT32:
                READ(float, as_float, FLOATING);
        case DLP_DTYPE_FLOAT64:
                READ(double, as_float, FLOATING);
        default:
                memcpy(&half, bytes, sizeof(half));
                bits = float32_from_half(half);
                memcpy(&single, &bits, sizeof(single));
                return (struct any_number){ .sort = FLOATING, .as_float = (double)single };
        }
}

#define EXACT 53 /* bits of a whole number that a double has for certain */

/* A double that is the number; false: there is none. */
static bool to_double(const struct any_number *number, double *ret_double) {
        switch (number->sort) {
        case SIGNED:
                *ret_double = (double)number->as_signed;
                return number->as_signed >= -(1ll << EXACT) && number->as_signed <= 1ll << EXACT;
        case UNSIGNED:
                *ret_double = (double)number->as_unsigned;
                return number->as_unsigned <= 1ull << EXACT;
        default:
                *ret_double = number->as_float;
                return true;
        }
}

bool number_convert(uint32_t from, const void *number, uint32_t to, void *ret_number) {
        struct any_number any;
        double wide = 0;
        float single;
        int64_t whole;

        if (from == to) {
                memcpy(ret_number, number, dlp_dtype_bytes(to));
                return true;
        }
        any = number_types_read_number(from, number);
        if (to == DLP_DTYPE_FLOAT64) {
                bool is_exact = to_double(&any, &wide);

                memcpy(ret_number, &wide, sizeof(wide));
                return is_exact;
        }
        if (to == DLP_DTYPE_FLOAT32) { /* from float16, all of which it has */
                single = (float)any.as_float;
                memcpy(ret_number, &single, sizeof(single));
                return any.sort == FLOATING;
        }
        if (any.sort == FLOATING)
                return false;
        whole = any.sort == SIGNED ? any.as_signed : (int64_t)any.as_unsigned;
        memcpy(ret_number, &whole, dlp_dtype_bytes(to)); /* little-endian: its first bytes */
        return any.sort == SIGNED || to == DLP_DTYPE_UINT64 || any.as_unsigned <= INT64_MAX;
}

bool numbers_convert(uint32_t from, const void *numbers, uint64_t n, uint32_t to, void *ret_numbers) {
        size_t n_from = dlp_dtype_bytes(from), n_to = dlp_dtype_bytes(to);

        for (uint64_t i = 0; i < n; i++)
                if (!number_convert(from, (const uint8_t *)numbers + i * n_from, to, (uint8_t *)ret_numbers + i * n_to))
                        return false;
        return true;
}

int number_differs(uint32_t from, uint32_t to, struct why *why) {
        return why_set(
                why, -ENOTSUP,
                "is %s in this file and of another type in others; in %s, which all together would be, one of its "
                "numbers is not exact: write all files with one type",
                dlp_dtype_name(from), dlp_dtype_name(to));
}
