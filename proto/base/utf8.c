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
