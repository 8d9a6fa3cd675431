#include "daemon/ctl/metrics/metrics_text.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 16384u
#define DIGITS_MAX  20u

void text_add_bytes(struct text *text, const char *bytes, size_t n) {
        if (text->failed)
                return;
        if (text->capacity - text->n < n) {
                size_t capacity = text->capacity ? text->capacity : FIRST_BYTES;
                char *more;

                while (capacity - text->n < n)
                        capacity *= 2;
                more = realloc(text->bytes, capacity);
                if (!more) {
                        text->failed = true;
                        return;
                }
                text->bytes = more;
                text->capacity = capacity;
        }
        memcpy(text->bytes + text->n, bytes, n);
        text->n += n;
}

void text_add(struct text *text, const char *string) {
        text_add_bytes(text, string, strlen(string));
}

void text_add_decimal(struct text *text, uint64_t number, unsigned n_places) {
        char digits[DIGITS_MAX + 2];
        char *at = digits + sizeof(digits), *end = at;
        unsigned n_left = n_places;

        for (; n_left > 0 && number % 10 == 0; n_left--)
                number /= 10;
        for (unsigned i = 0; number > 0 || i <= n_left; i++) {
                if (i == n_left && i > 0)
                        *--at = '.';
                *--at = (char)('0' + number % 10);
                number /= 10;
        }
        text_add_bytes(text, at, (size_t)(end - at));
}
