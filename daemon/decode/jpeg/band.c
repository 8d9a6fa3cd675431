#include "daemon/decode/jpeg/band.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT  64u
#define MAX_ROWS   (1u + 2u * JPEG_BLOCK) /* of pixels that a row of MCUs completes */
#define VIEW_SLACK 64u /* bytes after a row of pixels, so that rows do not share a cache line's end */

static size_t band_round_up(size_t n) {
        return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static uint32_t band_rows_of(const struct mcu_grid *grid, uint32_t component) {
        return JPEG_BLOCK * (component == 0 ? grid->v : 1);
}

/* A whole number of groups, and the slack that the kernels may read after them. */
static size_t stride_of(const struct mcu_grid *grid, uint32_t component) {
        size_t n_mcus = grid->n_mcus_x + grid->n_mcus_x % grid->group_mcus;

        return band_round_up(n_mcus * JPEG_BLOCK * (component == 0 ? grid->h : 1) + BASELINE_READ_SLACK);
}

static int band_grow(struct band *band, size_t n_bytes) {
        uint8_t *memory;

        if (n_bytes <= band->n_bytes)
                return 0;
        memory = aligned_alloc(ALIGNMENT, n_bytes);
        if (!memory)
                return -ENOMEM;
        memset(memory, 0, n_bytes); /* undefined samples may be read, but never another owner's data */
        free(band->memory);
        band->memory = memory;
        band->n_bytes = n_bytes;
        return 0;
}

int band_reserve(struct band *band, const struct mcu_grid *grid, uint32_t box_width) {
        size_t rgb_stride = band_round_up((size_t)(box_width + 1) * PIXEL_BYTES + BASELINE_RGB_SLACK);
        size_t n_bytes = rgb_stride * MAX_ROWS;
        uint8_t *at;
        int r;

        for (uint32_t c = 0; c < grid->n_components; c++)
                n_bytes += stride_of(grid, c) * (1 + band_rows_of(grid, c));
        r = band_grow(band, n_bytes);
        if (r < 0)
                return r;

        at = band->memory;
        for (uint32_t c = 0; c < grid->n_components; c++) {
                band->planes[c] = (struct plane){ at, stride_of(grid, c) };
                at += band->planes[c].stride * (1 + band_rows_of(grid, c));
        }
        band->rgb = at;
        band->rgb_stride = rgb_stride;
        return 0;
}

void band_fini(struct band *band) {
        free(band->memory);
        memset(band, 0, sizeof(*band));
}

/* ---- pixels ---------------------------------------------------------------------------------------------------- */

/* Row y of the component, which lies in this row of MCUs or just above it. */
static const uint8_t *band_samples_of(const struct band *band, const struct mcu_grid *grid, uint32_t component,
                                      uint32_t idx_row, uint32_t y) {
        const struct plane *plane = &band->planes[component];

        return plane->samples + (y + 1 - idx_row * band_rows_of(grid, component)) * plane->stride;
}

static void band_row_of(const struct band *band, const struct mcu_grid *grid, uint32_t idx_row, uint32_t y,
                        struct baseline_row *row) {
        uint32_t near = y / grid->v, far = near;

        *row = (struct baseline_row){
                .luma = band_samples_of(band, grid, 0, idx_row, y),
                .chroma_width = grid->chroma_width,
                .far_is_below = y % 2 == 1,
        };
        if (grid->n_components == 1)
                return;
        if (grid->v == 2 && y % 2 == 0 && near > 0)
                far = near - 1;
        if (grid->v == 2 && y % 2 == 1 && near + 1 < grid->chroma_height)
                far = near + 1;
        for (uint32_t c = 0; c < 2; c++) {
                row->near[c] = band_samples_of(band, grid, 1 + c, idx_row, near);
                row->far[c] = band_samples_of(band, grid, 1 + c, idx_row, far);
        }
}

int band_give(struct band *band, const struct mcu_grid *grid, const struct baseline_kernels *kernels, uint32_t idx_row,
              uint32_t from, uint32_t to, const struct box *box, const struct row_sink *sink, struct why *why) {
        uint32_t x0 = box->x & ~1u; /* the kernels begin with an even column */
        struct view view = {
                .pixels = band->rgb + (size_t)(box->x - x0) * PIXEL_BYTES,
                .stride = band->rgb_stride,
                .width = box->width,
                .height = to - from,
        };

        for (uint32_t y = from; y < to; y++) {
                struct baseline_row row;

                band_row_of(band, grid, idx_row, y, &row);
                kernels->row[grid->sampling](&row, x0, box->x + box->width, band->rgb + (y - from) * band->rgb_stride);
        }
        return sink->take(sink->userdata, &view, why);
}

void band_keep(struct band *band, const struct mcu_grid *grid) {
        if (grid->v == 1)
                return;
        for (uint32_t c = 0; c < grid->n_components; c++) {
                struct plane *plane = &band->planes[c];

                memcpy(plane->samples, plane->samples + band_rows_of(grid, c) * plane->stride, plane->stride);
        }
}
