#include "proto/base/bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const UNITS[] = { "KiB", "MiB", "GiB", "TiB" };

#define N_UNITS (sizeof(UNITS) / sizeof(UNITS[0]))

static int unit_shift(const char *unit) {
        if (*unit == '\0')
                return 0;
        for (size_t i = 0; i < N_UNITS; i++)
                if (strcmp(unit, UNITS[i]) == 0)
                        return 10 * ((int)i + 1);
        return -EINVAL;
}

int parse_bytes(const char *text, uint64_t *ret_bytes) {
        const char *end = text;
        uint64_t n = 0, n_bytes;
        bool is_too_large = false;
        int shift;

        for (; *end >= '0' && *end <= '9'; end++)
                if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*end - '0'), &n))
                        is_too_large = true; /* reported only if the rest is a valid size */

        shift = unit_shift(end);
        if (end == text || shift < 0)
                return -EINVAL;
        if (is_too_large || __builtin_mul_overflow(n, 1ull << shift, &n_bytes))
                return -ERANGE;

        *ret_bytes = n_bytes;
        return 0;
}
