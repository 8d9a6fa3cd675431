/* staging/prepare/encoder.h: rows of RGB pixels -> a JPEG. Private to this floor.
 *
 * libjpeg-turbo's compressor with its defaults, as Pillow's save(quality=) has them: 4:2:0, the slow and exact
 * transform; so the same pixels give the same bytes on every CPU. Pictures up to ENCODER_OPTIMISED_PIXELS get Huffman
 * tables of their own: a few per cent smaller, the same pixels. No metadata: no EXIF, no colour profile. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/box.h"
#include "daemon/staging/prepare/prepare_block.h"
#include "proto/base/why.h"

#define ENCODER_SIDE_MAX         65500u     /* pixels a side: libjpeg's JPEG_MAX_DIMENSION */
#define ENCODER_OPTIMISED_PIXELS (4u << 20) /* own tables take two passes: all coefficients, 3 bytes a pixel, wait */

/* Of one thread at a time. */
struct encoder;

int encoder_new(struct encoder **ret_encoder); /* -ENOMEM */
void encoder_free(struct encoder *encoder);    /* NULL is fine */

/* Begins a picture of at most ENCODER_SIDE_MAX a side; forgets one that was not ended. `quality`: 1 to 100. -ENOMEM,
 * -EINVAL. */
int encoder_begin(struct encoder *encoder, uint32_t width, uint32_t height, uint32_t quality, struct why *why);

/* The next rows, as wide as the picture. */
int encoder_feed(struct encoder *encoder, const struct view *rows, struct why *why);

/* All rows have come. The file is the caller's (block_free). */
int encoder_end(struct encoder *encoder, struct block *ret_file, size_t *ret_n_bytes, struct why *why);

/* Forgets a picture that was begun and is not to be ended. */
void encoder_forget(struct encoder *encoder);

/* Memory that a picture may take, the file included, in bytes. */
uint64_t encoder_need(uint32_t width, uint32_t height);
