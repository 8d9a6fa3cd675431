/* ctl/metrics/metrics_text.h: a text that grows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
        char *bytes; /* NULL at first; the owner's (free) */
        size_t n, capacity;
        bool failed; /* there was no memory: it is not complete */
};

void text_add_bytes(struct text *text, const char *bytes, size_t n);
void text_add(struct text *text, const char *string);

/* `number` divided by 10^n_places, without zeroes at its end: 1500 with 3 places is "1.5". */
void text_add_decimal(struct text *text, uint64_t number, unsigned n_places);
