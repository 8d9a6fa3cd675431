#include "daemon/data/name_order.h"

/* Bytes are compared as long as they are equal; only at the first difference are characters decoded. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static bool is_continuation(uint8_t byte) {
        return (byte & 0xc0) == 0x80;
}

/* The character at `at`, and how many bytes it takes: a valid UTF-8 sequence (shortest form, no surrogate, not above
 * U+10FFFF), else one escaped byte. A NUL ends every sequence, as it is no continuation byte. */
static uint32_t decode(const uint8_t *at, size_t *ret_length) {
        uint8_t lead = at[0];
        uint32_t character;

        *ret_length = 1;
        if (lead < 0x80)
                return lead;
        if (lead >= 0xc2 && lead <= 0xdf && is_continuation(at[1])) {
                *ret_length = 2;
                return (lead & 0x1fu) << 6 | (at[1] & 0x3fu);
        }
        if (lead >= 0xe0 && lead <= 0xef && is_continuation(at[1]) && is_continuation(at[2])) {
                character = (lead & 0xfu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
                if (character >= 0x800 && (character < 0xd800 || character > 0xdfff)) {
                        *ret_length = 3;
                        return character;
                }
        }
        if (lead >= 0xf0 && lead <= 0xf4 && is_continuation(at[1]) && is_continuation(at[2]) &&
            is_continuation(at[3])) {
                character = (lead & 7u) << 18 | (at[1] & 0x3fu) << 12 | (at[2] & 0x3fu) << 6 | (at[3] & 0x3fu);
                if (character >= 0x10000 && character <= 0x10ffff) {
                        *ret_length = 4;
                        return character;
                }
        }
        return 0xdc00u + lead;
}

/* Where the character that covers byte `at` may begin: a lead byte at most three continuation bytes earlier, else `at`
 * itself. A lead byte always begins a character, so decoding from there is in step. */
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
