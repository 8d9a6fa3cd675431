/* codec/masks/channels.h: moves bytes as a recipe moves the pixels of a mask. What moves a mask does to each channel of a
 * picture the same, so three rows of bytes are moved at a time. Private to this floor. */
#pragma once

#include "daemon/codec/codec_type.h"

#define N_CHANNELS PIXEL_BYTES

struct channels {
        const uint8_t *bytes[N_CHANNELS]; /* the first byte of each, of a picture of the geometry's size */
        size_t step;                      /* bytes from one pixel to the next */
        uint32_t width;                   /* pixels of a row */
};

/* The memory that channels_move() takes beside the workspace's. */
uint64_t channels_bytes(const struct geometry *geometry);

/* Moves the channels by the plan of the open mask, which is not one for wide numbers. Returns 0 and the result, height
 * x width x N_CHANNELS, which stays in tools->planes; or -ENOMEM. */
int channels_move(struct codec_tools *tools, const struct channels *channels, const uint8_t **ret_pixels,
                  struct why *why);
