#include "proto/base/text.h"

#include <stddef.h>
#include <stdint.h>

#include "proto/base/utf8.h"

static size_t printable_length(const char *bytes) {
        uint32_t point;
        size_t n = utf8_decode(bytes, SIZE_MAX, &point);

        return n > 0 && point >= ' ' && point != 0x7f ? n : 0;
}

bool text_is_printable(const char *text) {
        const char *at = text;

        while (*at) {
                size_t n = printable_length(at);

                if (n == 0)
                        return false;
                at += n;
        }
        return true;
}

void text_make_printable(char *text) {
        char *at = text;

        while (*at) {
                size_t n = printable_length(at);

                if (n == 0) {
                        *at = '?';
                        n = 1;
                }
                at += n;
        }
}
