#include "proto/base/shown/amounts.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const UNITS[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };

#define N_UNITS (sizeof(UNITS) / sizeof(UNITS[0]))

const char *format_bytes(char buffer[BYTES_TEXT_MAX], uint64_t n_bytes) {
        if (n_bytes < 1024) {
                snprintf(buffer, BYTES_TEXT_MAX, "%" PRIu64 " bytes", n_bytes);
                return buffer;
        }

        for (size_t i = 0; i < N_UNITS; i++) {
                unsigned shift = 10 * ((unsigned)i + 1);
                uint64_t one = 1ull << shift, part = n_bytes & (one - 1);
                uint64_t tenths = (n_bytes >> shift) * 10 + ((part * 10 + one / 2) >> shift); /* < 2^64: part < 2^60 */

                /* Rounding up may reach the next unit: 1,048,575 bytes are 1.0 MiB, not 1024.0 KiB. */
                if (tenths < 10240 || i == N_UNITS - 1) {
                        snprintf(buffer, BYTES_TEXT_MAX, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10,
                                 UNITS[i]);
                        break;
                }
        }
        return buffer;
}

static void add_exact(char text[AMOUNT_TEXT_MAX], uint64_t n_bytes) {
        size_t n = strlen(text);

        if (n_bytes >= 1024)
                snprintf(text + n, AMOUNT_TEXT_MAX - n, " (%" PRIu64 " bytes)", n_bytes);
}

void format_compared(char one[AMOUNT_TEXT_MAX], uint64_t n_one, char other[AMOUNT_TEXT_MAX], uint64_t n_other) {
        if (strcmp(format_bytes(one, n_one), format_bytes(other, n_other)) != 0)
                return;
        add_exact(one, n_one);
        add_exact(other, n_other);
}

const char *format_count(char buffer[COUNT_TEXT_MAX], uint64_t n) {
        static const struct {
                uint64_t from, one;
                const char *unit;
        } SCALES[] = { { 1000000000, 1000000000, "G" }, { 1000000, 1000000, "M" }, { 100000, 1000, "k" } };

        for (size_t i = 0; i < sizeof(SCALES) / sizeof(SCALES[0]); i++) {
                uint64_t one = SCALES[i].one;

                if (n < SCALES[i].from)
                        continue;
                if (one == 1000)
                        snprintf(buffer, COUNT_TEXT_MAX, "%" PRIu64 " k", n / one);
                else
                        snprintf(buffer, COUNT_TEXT_MAX, "%" PRIu64 ".%" PRIu64 " %s", n / one, n % one / (one / 10),
                                 SCALES[i].unit);
                return buffer;
        }
        snprintf(buffer, COUNT_TEXT_MAX, "%" PRIu64, n);
        return buffer;
}

const char *format_duration(char buffer[DURATION_TEXT_MAX], uint64_t seconds) {
        if (seconds < 60)
                snprintf(buffer, DURATION_TEXT_MAX, "%" PRIu64 " s", seconds);
        else if (seconds < 3600)
                snprintf(buffer, DURATION_TEXT_MAX, "%" PRIu64 " min", (seconds + 30) / 60);
        else if (seconds < 86400)
                snprintf(buffer, DURATION_TEXT_MAX, "%" PRIu64 " h %" PRIu64 " min", seconds / 3600, seconds / 60 % 60);
        else
                snprintf(buffer, DURATION_TEXT_MAX, "%" PRIu64 " d %" PRIu64 " h", seconds / 86400,
                         seconds / 3600 % 24);
        return buffer;
}

unsigned percent_of(uint64_t n_done, uint64_t n_total) {
        unsigned percent;

        if (n_done >= n_total)
                return 100;
        percent = (unsigned)((double)n_done / (double)n_total * 100);
        return percent < 100 ? percent : 99; /* doubles round */
}
