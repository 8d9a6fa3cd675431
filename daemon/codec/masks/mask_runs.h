/* codec/masks/mask_runs.h: masks as COCO's run lengths: pixels column by column, from the top; first a run of zeroes, which
 * may be empty, then one of ones, and so on. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"

struct runs {
        uint8_t *plane; /* height rows of width, all zero */
        uint32_t width, height;
        uint64_t at; /* pixels so far */
        uint8_t value;
};

void runs_begin(struct runs *runs, uint8_t *plane, uint32_t width, uint32_t height);

/* The next run. -EBADMSG: it is negative, or longer than what is left of the plane. */
int runs_add(struct runs *runs, int64_t n, struct why *why);

/* -EBADMSG: pixels are left over. */
int runs_end(const struct runs *runs, struct why *why);

/* All runs as a text: numbers in groups of five bits, the lowest first, each a character from "0" on, and from the
 * fourth run on the difference from the run before the last one. `string` is a string of JSON with its quotes, which
 * the scanner has accepted. -EBADMSG also for other characters and numbers without an end. */
int runs_add_text(struct runs *runs, const uint8_t *string, size_t n_string, struct why *why);
