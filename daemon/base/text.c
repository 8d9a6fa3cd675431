#include "daemon/base/text.h"

#include <stddef.h>

/* Length of the UTF-8 sequence that begins here; 0 if there is none, or one that the text's end cuts. */
static size_t sequence_length(const unsigned char *bytes) {
        size_t n = bytes[0] < 0x80   ? 1
                   : bytes[0] < 0xc2 ? 0
                   : bytes[0] < 0xe0 ? 2
                   : bytes[0] < 0xf0 ? 3
                   : bytes[0] < 0xf5 ? 4
                                     : 0;

        for (size_t i = 1; i < n; i++)
                if ((bytes[i] & 0xc0) != 0x80)
                        return 0;
        return n;
}

static size_t printable_length(const unsigned char *bytes) {
        return *bytes < ' ' || *bytes == 0x7f ? 0 : sequence_length(bytes);
}

bool text_is_printable(const char *text) {
        const unsigned char *at = (const unsigned char *)text;

        while (*at) {
                size_t n = printable_length(at);

                if (n == 0)
                        return false;
                at += n;
        }
        return true;
}

void text_make_printable(char *text) {
        unsigned char *at = (unsigned char *)text;

        while (*at) {
                size_t n = printable_length(at);

                if (n == 0) {
                        *at = '?';
                        n = 1;
                }
                at += n;
        }
}
