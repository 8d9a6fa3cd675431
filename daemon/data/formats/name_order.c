#include "daemon/data/formats/name_order.h"

/* Bytes are compared while they are equal. Only at the first difference are characters decoded. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/utf8.h"

static bool is_continuation(uint8_t byte) {
        return (byte & 0xc0) == 0x80;
}

/* Decodes the character at `at`, and says how many bytes it takes: a valid UTF-8 sequence, or one escaped byte. */
static uint32_t decode(const uint8_t *at, size_t *ret_length) {
        uint32_t character;

        *ret_length = utf8_decode((const char *)at, SIZE_MAX, &character);
        if (*ret_length > 0)
                return character;
        *ret_length = 1;
        return 0xdc00u + at[0];
}

/* Where the character that covers byte `at` may begin: at a lead byte at most three bytes earlier, with only
 * continuation bytes after it, or else at `at` itself. A lead byte always begins a character, so decoding is in step
 * from there. */
static size_t character_begin(const uint8_t *text, size_t at) {
        for (size_t back = 1; back <= 3 && back <= at; back++) {
                if (text[at - back] >= 0xc0)
                        return at - back;
                if (!is_continuation(text[at - back]))
                        break;
        }
        return at;
}

int name_compare(const char *a, const char *b) {
        const uint8_t *bytes_a = (const uint8_t *)a, *bytes_b = (const uint8_t *)b;
        size_t at = 0, at_a, at_b;

        while (bytes_a[at] == bytes_b[at] && bytes_a[at])
                at++;
        if ((bytes_a[at] | bytes_b[at]) < 0x80)
                return bytes_a[at] - bytes_b[at];

        at_a = at_b = character_begin(bytes_a, at);
        for (;;) {
                size_t n_a, n_b;
                uint32_t character_a = decode(bytes_a + at_a, &n_a), character_b = decode(bytes_b + at_b, &n_b);

                if (character_a != character_b)
                        return character_a < character_b ? -1 : 1;
                if (character_a == 0)
                        return 0;
                at_a += n_a;
                at_b += n_b;
        }
}
