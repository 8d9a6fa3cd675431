/* decode/jpeg/band.h: the samples of the current row of MCUs, and the rows of pixels that they complete. Private to
 * this floor.
 *
 * One row of samples of the previous row of MCUs is kept above the current one: if chroma is half as high, the last row
 * of pixels needs the chroma below it. So memory depends on the picture's width, not on its height. */
#pragma once

#include "daemon/base/rows.h"
#include "daemon/decode/jpeg/mcu_grid.h"

struct band {
        struct plane {
                uint8_t *samples; /* the row kept from before, then those of the row of MCUs */
                size_t stride;
        } planes[JPEG_COMPONENTS];
        uint8_t *rgb; /* rows of pixels of the box */
        size_t rgb_stride;
        uint8_t *memory; /* all of the above */
        size_t n_bytes;
};

/* Makes room for a picture from which rows of up to `box_width` pixels are needed. 0 or -ENOMEM. */
int band_reserve(struct band *band, const struct mcu_grid *grid, uint32_t box_width);

void band_fini(struct band *band);

/* Where a block's samples are stored; x0 is the first MCU of its group. */
static inline uint8_t *band_block(const struct band *band, const struct mcu_grid *grid,
                                  const struct mcu_grid_block *block, uint32_t x0) {
        const struct plane *plane = &band->planes[block->component];
        uint32_t n_blocks_mcu = block->component == 0 ? grid->h : 1;

        return plane->samples + (1 + (size_t)block->y * JPEG_BLOCK) * plane->stride +
               ((size_t)x0 * n_blocks_mcu + block->x) * JPEG_BLOCK;
}

/* Makes the pixels of rows [from, to) of the picture, in the box's columns, and passes them to the sink. They depend
 * only on samples of row of MCUs `idx_row` and on the kept row. 0 or what the sink returned. */
int band_give(struct band *band, const struct mcu_grid *grid, const struct baseline_kernels *kernels, uint32_t idx_row,
              uint32_t from, uint32_t to, const struct box *box, const struct row_sink *sink, struct why *why);

/* Keeps the samples that the next row of MCUs needs. */
void band_keep(struct band *band, const struct mcu_grid *grid);
