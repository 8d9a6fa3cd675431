/* decode/jpeg/mcu_grid.h: the positions of a JPEG's blocks, and which of them a box needs. Private to this floor. */
#pragma once

#include "daemon/base/box.h"
#include "daemon/decode/jpeg/entropy.h"

/* Two blocks that are transformed together. */
struct mcu_grid_pair {
        struct mcu_grid_block {
                uint32_t component;
                uint32_t x, y; /* blocks of the component, from the group's top left corner */
        } blocks[2];
};

struct mcu_grid {
        enum baseline_sampling sampling;
        uint32_t width, height; /* pixels */
        uint32_t h, v;          /* luma blocks of an MCU along either axis; each chroma component has one block */
        uint32_t n_components;
        uint32_t n_mcus_x, n_mcus_y;
        uint32_t group_mcus; /* MCUs of a group, side by side: 1 or 2 */
        uint32_t n_pairs;    /* of a group */
        struct mcu_grid_pair pairs[ENTROPY_PAIRS_MAX];
        uint32_t chroma_width, chroma_height; /* of the picture, padding left out */
};

/* MCUs [x0, x1) of the rows [y0, y1), and the columns of luma that are needed within them. If chroma is smoothed along
 * an axis, a box needs one more chroma sample on either side. */
struct mcu_grid_range {
        uint32_t x0, x1, y0, y1;
        uint32_t luma_x0, luma_x1;
};

void mcu_grid_init(struct mcu_grid *grid, const struct jpeg_header *header);

/* Tells the entropy decoder the sequence of the blocks and where each is stored. */
void mcu_grid_blocks(const struct mcu_grid *grid, struct entropy *entropy);

struct mcu_grid_range mcu_grid_needed(const struct mcu_grid *grid, const struct box *box);
