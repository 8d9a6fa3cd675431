/* codec/turned.h: pictures that lie on their side in the file, decoded upright. Private to this floor.
 *
 * An orientation is EXIF's, 1 to 8: which side of the stored picture is up, and whether it is mirrored. Pixels are
 * those of Pillow's ImageOps.exif_transpose(). Only the part that the pipeline needs is decoded and turned; it takes
 * memory of that size, where an upright picture passes through the cache. */
#pragma once

#include "daemon/codec/codec_type.h"

/* The size of the upright picture. */
void turned_size(uint32_t orientation, uint32_t *width, uint32_t *height);

/* More bytes than decoder_need() that turned_render() takes for what the plan needs. */
uint64_t turned_need(const struct geometry *geometry);

/* As render(), for a picture that is turned. The plan and its boxes are those of the upright picture; `tools->info` has
 * the stored size. */
int turned_render(struct codec_tools *tools, uint32_t orientation, uint8_t *out, size_t stride, struct why *why);

/* In place of it if the stored pixels that the plan needs are in memory. -ENOMEM. */
int turned_run(struct codec_tools *tools, uint32_t orientation, const struct view *stored, uint8_t *out, size_t stride,
               struct why *why);

/* Turns pixels that lie one after the other: width x height stored ones -> upright ones. */
void turned_copy(uint32_t orientation, const uint8_t *pixels, uint32_t width, uint32_t height, uint8_t *out);

/* The stored pixels that a box of the upright picture shows. `width` and `height` are stored ones. */
struct box turned_source(uint32_t orientation, uint32_t width, uint32_t height, const struct box *box);
