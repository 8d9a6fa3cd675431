/* decode/jpeg/baseline.h: our own decoder for the JPEGs that are usual in training sets. Private to this floor.
 *
 * It handles baseline sequential files (Huffman, 8 bits, one scan; grey, 4:4:4, 4:2:2, 4:2:0, 4:4:0; restart
 * intervals). Its pixels are bit-identical to libjpeg-turbo's default output (accurate integer DCT, smooth upsampling)
 * at about twice the speed: it decodes only what a box needs and stops after the box's last row.
 *
 * It does not judge any other file: it hands over to libjpeg-turbo, whose pixels, warnings and errors then count. So if
 * it decodes a picture, libjpeg-turbo would decode it without a warning as far as the box reaches; damage after the box
 * is not noticed.
 *
 * A decoder belongs to one thread at a time; internally, decoders share tables that many files have. */
#pragma once

#include "daemon/base/rows.h"
#include "daemon/decode/jpeg/header.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct baseline;

/* Which code computes. All forms give the same bits. */
enum baseline_code {
        BASELINE_CODE_BEST, /* the fastest form on this CPU */
        BASELINE_CODE_SCALAR,
        BASELINE_CODE_AVX2, /* also uses BMI2, which came with AVX2 */
};

/* -ENOTSUP: this CPU cannot run the code that was asked for by name. */
int baseline_new(enum baseline_code code, struct baseline **ret_baseline);

/* Takes NULL. */
void baseline_free(struct baseline *baseline);

/* Reads the headers. `bytes` must stay valid until the picture is read or another is opened. 0; BASELINE_HANDS_OVER:
 * this decoder does not handle the file; -ENOMEM. */
int baseline_open(struct baseline *baseline, const uint8_t *bytes, size_t n_bytes, uint32_t *ret_width,
                  uint32_t *ret_height);

/* Of the file that is open: it has no chroma, so that all pixels have equal colours. */
bool baseline_is_grey(const struct baseline *baseline);

/* Decodes the pixels of `box`, which lies within the picture (asserted). May hand over even after rows have been passed
 * on: the decoder that takes over calls the sink's begin() again. Once for each picture. 0, BASELINE_HANDS_OVER,
 * -ENOMEM, or what the sink returned. */
int baseline_read(struct baseline *baseline, const struct box *box, const struct row_sink *sink, struct why *why);

/* The memory that it holds now, without shared tables, for accounting. */
size_t baseline_bytes(const struct baseline *baseline);

/* Frees what is kept for later pictures; an open one may still be read afterwards. */
void baseline_trim(struct baseline *baseline);
