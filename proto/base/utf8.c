#include "proto/base/utf8.h"

#include <stdbool.h>
#include <string.h>

size_t utf8_decode(const char *bytes, size_t n_bytes, uint32_t *ret_point) {
        static const uint32_t least[] = { 0, 0, 0x80, 0x800,
                                          0x10000 }; /* the smallest code point that needs that number of bytes */
        const unsigned char *at = (const unsigned char *)bytes;
        size_t n = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
        uint32_t point;

        if (n == 0 || n > n_bytes)
                return 0;
        point = n == 1 ? at[0] : at[0] & (0x7fu >> n);
        for (size_t i = 1; i < n; i++) {
                if ((at[i] & 0xc0) != 0x80)
                        return 0;
                point = point << 6 | (at[i] & 0x3f);
        }
        if (point < least[n] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
                return 0;
        *ret_point = point;
        return n;
}

/* Eight characters of ASCII, as most text has them. */
static bool is_plain_word(const char *bytes) {
        uint64_t word;

        memcpy(&word, bytes, sizeof(word));
        return (word & 0x8080808080808080u) == 0;
}

size_t utf8_valid(const void *bytes, size_t n_bytes) {
        const char *text = bytes;
        uint32_t point;
        size_t at, n;

        for (at = 0; at < n_bytes; at += n) {
                n = n_bytes - at >= 8 && is_plain_word(text + at) ? 8 : utf8_decode(text + at, n_bytes - at, &point);
                if (n == 0)
                        break;
        }
        return at;
}

unsigned utf8_columns(uint32_t point) {
        static const struct {
                uint32_t first, last;
                unsigned n;
        } RANGES[] = { { 0x300, 0x36f, 0 },     { 0x1100, 0x115f, 2 },  { 0x20d0, 0x20ff, 0 }, { 0x2e80, 0x303e, 2 },
                       { 0x3041, 0xa4cf, 2 },   { 0xac00, 0xd7a3, 2 },  { 0xf900, 0xfaff, 2 }, { 0xfe00, 0xfe0f, 0 },
                       { 0xfe20, 0xfe2f, 0 },   { 0xfe30, 0xfe6f, 2 },  { 0xff00, 0xff60, 2 }, { 0xffe0, 0xffe6, 2 },
                       { 0x1f300, 0x1faff, 2 }, { 0x20000, 0x3fffd, 2 } };

        for (size_t i = 0; i < sizeof(RANGES) / sizeof(RANGES[0]) && point >= RANGES[i].first; i++)
                if (point <= RANGES[i].last)
                        return RANGES[i].n;
        return 1;
}
