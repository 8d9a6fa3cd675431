/* decode/jpeg/baseline.h: our own decoder for the JPEGs that training sets are made of. Private to this floor.
 *
 * It handles baseline sequential files (Huffman, 8 bits, one scan; grey, 4:4:4, 4:2:2, 4:2:0, 4:4:0; restart intervals)
 * and gives the very bits of libjpeg-turbo's default output (accurate integer DCT, smooth upsampling) at about twice
 * the speed: it decodes only what a box needs and stops after the box's last row.
 *
 * Whatever else it meets it does not judge: it hands over, and libjpeg-turbo's pixels, warnings and errors are what
 * counts. So a picture that it decodes is one that libjpeg-turbo decodes without a warning as far as the box reaches;
 * damage after the box is not seen.
 *
 * A decoder belongs to one thread at a time; tables that many files carry are shared between decoders inside. */
#pragma once

#include "daemon/base/rows.h"

#include <stddef.h>
#include <stdint.h>

#define BASELINE_HANDS_OVER 1

struct baseline;

/* Which code computes. All give the same bits. */
enum baseline_code {
        BASELINE_CODE_BEST, /* what this CPU does fastest */
        BASELINE_CODE_SCALAR,
        BASELINE_CODE_AVX2, /* and BMI2, which came with it */
};

/* -ENOTSUP: this CPU cannot run the code that was asked for by name. */
int baseline_new(enum baseline_code code, struct baseline **ret_baseline);

/* Takes NULL. */
void baseline_free(struct baseline *baseline);

/* Reads the headers. `bytes` must stay until the picture is read or another is opened. 0; BASELINE_HANDS_OVER: not a
 * file for us; -ENOMEM. */
int baseline_open(struct baseline *baseline, const uint8_t *bytes, size_t n_bytes, uint32_t *ret_width,
                  uint32_t *ret_height);

/* Decodes the pixels of `box`, which lies within the picture (asserted). May hand over after rows have been given: the
 * sink's begin() is called by whoever takes over. Once a picture. 0, BASELINE_HANDS_OVER, -ENOMEM, or what the sink
 * returned. */
int baseline_read(struct baseline *baseline, const struct box *box, const struct row_sink *sink, struct why *why);

/* Memory held at present, shared tables left out, for accounting. */
size_t baseline_bytes(const struct baseline *baseline);

/* Gives back what is kept for later pictures; an open one may be read afterwards. */
void baseline_trim(struct baseline *baseline);
