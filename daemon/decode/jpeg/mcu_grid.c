#include "daemon/decode/jpeg/mcu_grid.h"

#include <string.h>

static uint32_t divide_up(uint32_t a, uint32_t b) {
        return (a + b - 1) / b;
}

static enum baseline_sampling sampling_of(const struct jpeg_header *header) {
        if (header->n_components == 1)
                return BASELINE_GREY;
        if (header->h == 1)
                return header->v == 1 ? BASELINE_444 : BASELINE_440;
        return header->v == 1 ? BASELINE_422 : BASELINE_420;
}

/* If an MCU has one block of each component, the blocks of two neighbouring MCUs form the pairs. */
static void pairs_of_neighbours(struct mcu_grid *grid) {
        grid->group_mcus = 2;
        grid->n_pairs = grid->n_components;
        for (uint32_t c = 0; c < grid->n_components; c++)
                grid->pairs[c] = (struct mcu_grid_pair){ { { c, 0, 0 }, { c, 1, 0 } } };
}

/* Otherwise pairs of luma blocks, and a pair of the two chroma blocks. */
static void pairs_of_one(struct mcu_grid *grid) {
        uint32_t n_luma = grid->h * grid->v / 2;

        grid->group_mcus = 1;
        grid->n_pairs = n_luma + 1;
        for (uint32_t p = 0; p < n_luma; p++)
                for (uint32_t i = 0; i < 2; i++)
                        grid->pairs[p].blocks[i] = (struct mcu_grid_block){
                                .x = (2 * p + i) % grid->h,
                                .y = (2 * p + i) / grid->h,
                        };
        grid->pairs[n_luma] = (struct mcu_grid_pair){ { { 1, 0, 0 }, { 2, 0, 0 } } };
}

void mcu_grid_init(struct mcu_grid *grid, const struct jpeg_header *header) {
        *grid = (struct mcu_grid){
                .sampling = sampling_of(header),
                .width = header->width,
                .height = header->height,
                .h = header->h,
                .v = header->v,
                .n_components = header->n_components,
                .n_mcus_x = divide_up(header->width, JPEG_BLOCK * header->h),
                .n_mcus_y = divide_up(header->height, JPEG_BLOCK * header->v),
                .chroma_width = divide_up(header->width, header->h),
                .chroma_height = divide_up(header->height, header->v),
        };
        if (header->h * header->v == 1)
                pairs_of_neighbours(grid);
        else
                pairs_of_one(grid);
}

/* ---- blocks ---------------------------------------------------------------------------------------------------- */

/* Adds block number `side` of a pair in the form that the entropy decoder needs. */
static void mcu_grid_add_block(struct entropy *entropy, uint32_t idx_mcu, uint32_t component, uint32_t pair,
                               uint32_t side) {
        entropy->blocks[idx_mcu][entropy->n_blocks++] = (struct entropy_block){
                .component = (uint8_t)component,
                .pair = (uint8_t)pair,
                .at = (uint16_t)(pair * BASELINE_PAIR_COEFFICIENTS + side * BASELINE_RIGHT_BLOCK),
        };
}

void mcu_grid_blocks(const struct mcu_grid *grid, struct entropy *entropy) {
        for (uint32_t m = 0; m < grid->group_mcus; m++) {
                entropy->n_blocks = 0;
                for (uint32_t p = 0; p < grid->n_pairs; p++) {
                        const struct mcu_grid_block *blocks = grid->pairs[p].blocks;

                        if (grid->group_mcus == 2) {
                                mcu_grid_add_block(entropy, m, blocks[m].component, p, m);
                                continue;
                        }
                        mcu_grid_add_block(entropy, m, blocks[0].component, p, 0);
                        mcu_grid_add_block(entropy, m, blocks[1].component, p, 1);
                }
        }
}

/* ---- what a box needs ------------------------------------------------------------------------------------------ */

struct span {
        uint32_t from, to;
};

/* The MCUs that hold `n` pixels from `from` on, and the chroma that their ends need if it is smoothed along this
 * axis. */
static struct span mcus_of(uint32_t from, uint32_t n, uint32_t factor, uint32_t n_chroma) {
        uint32_t first = from / factor, last = (from + n - 1) / factor; /* samples of chroma */

        if (factor > 1) {
                first -= first > 0;
                last += last + 1 < n_chroma;
        }
        return (struct span){ first / JPEG_BLOCK, last / JPEG_BLOCK + 1 };
}

struct mcu_grid_range mcu_grid_needed(const struct mcu_grid *grid, const struct box *box) {
        struct span x = mcus_of(box->x, box->width, grid->h, grid->chroma_width);
        struct span y = mcus_of(box->y, box->height, grid->v, grid->chroma_height);
        uint32_t mcu_width = JPEG_BLOCK * grid->h;

        return (struct mcu_grid_range){
                .x0 = x.from,
                .x1 = x.to,
                .y0 = y.from,
                .y1 = y.to,
                .luma_x0 = box->x / mcu_width,
                .luma_x1 = (box->x + box->width - 1) / mcu_width + 1,
        };
}
