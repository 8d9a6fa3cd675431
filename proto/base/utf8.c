#include "proto/base/utf8.h"

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
