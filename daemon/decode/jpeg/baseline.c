/* decode/jpeg/baseline.c: from the bits of a file to the rows of a box, one row of MCUs after the other. */
#include "daemon/decode/jpeg/baseline.h"

#include "daemon/decode/jpeg/band.h"
#include "proto/base/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64u

/* Coefficients of one group; all zero between groups. */
struct group {
        _Alignas(ALIGNMENT) int16_t coefficients[ENTROPY_GROUP];
        int last[ENTROPY_PAIRS_MAX];
        uint32_t x0; /* its first MCU */
};

struct baseline {
        struct group groups[2]; /* one is read while the other is transformed */
        _Alignas(ALIGNMENT) int16_t steps[ENTROPY_PAIRS_MAX][BASELINE_PAIR_COEFFICIENTS];
        const struct baseline_kernels *kernels;
        const struct entropy_code *code;
        struct jpeg_header header;
        struct mcu_grid grid;
        struct band band;
        struct jpeg_tables tables;
        bool is_open;
        struct entropy entropy; /* large: last */
};

/* A picture being read. */
struct reading {
        const struct box *box;
        const struct row_sink *sink;
        struct why *why;
        struct mcu_grid_range range;
        bool is_luma_wanted[ENTROPY_PAIRS_MAX]; /* in the current row of MCUs */
};

/* ---- a decoder ------------------------------------------------------------------------------------------------- */

static int choose_code(struct baseline *baseline, enum baseline_code code) {
        const struct baseline_kernels *avx2 = baseline_kernels_avx2();
        const struct entropy_code *bmi2 = entropy_code_bmi2();

        if (code == BASELINE_CODE_AVX2 && (!avx2 || !bmi2))
                return -ENOTSUP;
        if (code == BASELINE_CODE_SCALAR)
                avx2 = NULL, bmi2 = NULL;
        baseline->kernels = avx2 ? avx2 : &baseline_kernels_scalar;
        baseline->code = bmi2 ? bmi2 : &entropy_code_plain;
        return 0;
}

int baseline_new(enum baseline_code code, struct baseline **ret_baseline) {
        struct baseline *baseline;
        int r;

        baseline = aligned_alloc(ALIGNMENT, sizeof(*baseline)); /* its size is a multiple of its alignment */
        if (!baseline)
                return -ENOMEM;
        memset(baseline, 0, sizeof(*baseline));
        entropy_init(&baseline->entropy);
        r = choose_code(baseline, code);
        if (r < 0) {
                baseline_free(baseline);
                return r;
        }
        *ret_baseline = baseline;
        return 0;
}

void baseline_free(struct baseline *baseline) {
        if (!baseline)
                return;
        tables_fini(&baseline->tables);
        band_fini(&baseline->band);
        free(baseline);
}

size_t baseline_bytes(const struct baseline *baseline) {
        return sizeof(*baseline) + baseline->band.n_bytes;
}

void baseline_trim(struct baseline *baseline) {
        band_fini(&baseline->band);
}

/* ---- headers --------------------------------------------------------------------------------------------------- */

/* Builds no tables yet: an opened picture may never be read. */
int baseline_open(struct baseline *baseline, const uint8_t *bytes, size_t n_bytes, uint32_t *ret_width,
                  uint32_t *ret_height) {
        baseline->is_open = false;
        if (jpeg_header_read(bytes, n_bytes, &baseline->header) != 0)
                return BASELINE_HANDS_OVER;
        baseline->is_open = true;
        *ret_width = baseline->header.width;
        *ret_height = baseline->header.height;
        return 0;
}

bool baseline_is_grey(const struct baseline *baseline) {
        return baseline->header.n_components == 1;
}

/* ---- before the first MCU -------------------------------------------------------------------------------------- */

static int16_t divisor(const struct jpeg_divisors *divisors, uint32_t k) {
        const uint8_t *bytes = divisors->bytes;

        return divisors->is_wide ? (int16_t)(uint16_t)(bytes[2 * k] << 8 | bytes[2 * k + 1]) : bytes[k];
}

/* Quantisation steps in the layout that the kernels need. */
static void baseline_set_steps(struct baseline *baseline) {
        for (uint32_t p = 0; p < baseline->grid.n_pairs; p++)
                for (uint32_t side = 0; side < 2; side++) {
                        uint32_t c = baseline->grid.pairs[p].blocks[side].component;
                        int16_t *steps = baseline->steps[p] + side * BASELINE_RIGHT_BLOCK;

                        for (uint32_t k = 0; k < JPEG_COEFFICIENTS; k++)
                                steps[baseline_place[k]] = divisor(&baseline->header.divisors[c], k);
                }
}

/* Uses the tables for skipping only if there is something to skip: they are made at their first use. */
static void set_tables(struct baseline *baseline, bool skips) {
        struct entropy *entropy = &baseline->entropy;

        for (uint32_t m = 0; m < baseline->grid.group_mcus; m++)
                for (uint32_t i = 0; i < entropy->n_blocks; i++) {
                        struct entropy_block *block = &entropy->blocks[m][i];

                        block->dc = tables_dc(&baseline->tables, block->component);
                        block->ac = tables_ac(&baseline->tables, block->component);
                        block->skips = skips ? tables_skips(&baseline->tables, block->component) : block->ac->steps;
                }
}

static int baseline_prepare(struct baseline *baseline, struct reading *reading) {
        const struct mcu_grid *grid = &baseline->grid;
        const struct mcu_grid_range *range = &reading->range;
        int r;

        mcu_grid_init(&baseline->grid, &baseline->header);
        reading->range = mcu_grid_needed(grid, reading->box);
        r = tables_hold(&baseline->tables, &baseline->header);
        if (r != 0)
                return r < 0 ? r : BASELINE_HANDS_OVER;
        r = band_reserve(&baseline->band, grid, reading->box->width);
        if (r < 0)
                return r;

        mcu_grid_blocks(grid, &baseline->entropy);
        set_tables(baseline, range->x0 > 0 || range->x1 < grid->n_mcus_x || range->y0 > 0);
        baseline_set_steps(baseline);
        memset(baseline->groups, 0, sizeof(baseline->groups)); /* the last picture may have ended within a group */
        entropy_start(&baseline->entropy, &baseline->header);
        return 0;
}

/* ---- a row of MCUs --------------------------------------------------------------------------------------------- */

/* Which pairs of luma have samples in the box's rows. */
static void baseline_find_wanted(const struct baseline *baseline, struct reading *reading, uint32_t idx_row) {
        const struct mcu_grid *grid = &baseline->grid;

        for (uint32_t p = 0; p < grid->n_pairs; p++) {
                const struct mcu_grid_block *blocks = grid->pairs[p].blocks;
                uint32_t y = idx_row * grid->v; /* in blocks */
                uint32_t from = (y + blocks[0].y) * JPEG_BLOCK, to = (y + blocks[1].y + 1) * JPEG_BLOCK;

                reading->is_luma_wanted[p] = to > reading->box->y && from < reading->box->y + reading->box->height;
        }
}

static void baseline_transform(struct baseline *baseline, const struct reading *reading, struct group *group) {
        const struct mcu_grid *grid = &baseline->grid;
        bool is_column_wanted = group->x0 + grid->group_mcus > reading->range.luma_x0 &&
                                group->x0 < reading->range.luma_x1;

        for (uint32_t p = 0; p < grid->n_pairs; p++) {
                const struct mcu_grid_block *blocks = grid->pairs[p].blocks;
                int16_t *pair = group->coefficients + p * BASELINE_PAIR_COEFFICIENTS;

                if (blocks[0].component > 0 || (is_column_wanted && reading->is_luma_wanted[p]))
                        baseline->kernels->idct_pair(pair, baseline->steps[p], group->last[p],
                                                     band_block(&baseline->band, grid, &blocks[0], group->x0),
                                                     band_block(&baseline->band, grid, &blocks[1], group->x0),
                                                     baseline->band.planes[blocks[0].component].stride);
                else
                        memset(pair, 0, sizeof(*pair) * BASELINE_PAIR_COEFFICIENTS);
        }
        memset(group->last, 0, sizeof(group->last));
}

/* The transform stays one group behind: loads of whole rows right after stores of single coefficients would have to
 * wait. */
static int baseline_read_row(struct baseline *baseline, const struct reading *reading) {
        const struct mcu_grid_range *range = &reading->range;
        uint32_t n = baseline->grid.group_mcus, now = 0;

        for (uint32_t x = range->x0; x < range->x1; x += n) {
                struct group *group = &baseline->groups[now];

                group->x0 = x;
                for (uint32_t m = 0; m < n && x + m < range->x1; m++)
                        if (baseline->code->read_mcu(&baseline->entropy, m, group->coefficients, group->last) != 0)
                                return BASELINE_HANDS_OVER;
                now ^= 1;
                if (x > range->x0)
                        baseline_transform(baseline, reading, &baseline->groups[now]);
        }
        baseline_transform(baseline, reading, &baseline->groups[now ^ 1]);
        return entropy_check(&baseline->entropy);
}

static int baseline_skip(struct baseline *baseline, uint32_t n_mcus) {
        if (n_mcus > 0 && baseline->code->skip_mcus(&baseline->entropy, n_mcus) != 0)
                return BASELINE_HANDS_OVER;
        return entropy_check(&baseline->entropy);
}

/* ---- a picture ------------------------------------------------------------------------------------------------- */

/* The end of the rows of pixels that row of MCUs `idx_row` completes. */
static uint32_t rows_complete(const struct baseline *baseline, const struct reading *reading, uint32_t idx_row) {
        const struct mcu_grid *grid = &baseline->grid;
        uint32_t n = (idx_row + 1) * grid->v * JPEG_BLOCK;
        uint32_t box_end = reading->box->y + reading->box->height;

        if (idx_row + 1 == reading->range.y1)
                return box_end;
        n -= grid->v - 1; /* their chroma is smoothed with that of the next row */
        return n < box_end ? n : box_end;
}

static int baseline_read_rows(struct baseline *baseline, struct reading *reading) {
        const struct mcu_grid *grid = &baseline->grid;
        const struct mcu_grid_range *range = &reading->range;
        uint32_t y = reading->box->y;

        for (uint32_t idx_row = range->y0; idx_row < range->y1; idx_row++) {
                bool is_last = idx_row + 1 == range->y1;
                uint32_t end = rows_complete(baseline, reading, idx_row);
                int r;

                baseline_find_wanted(baseline, reading, idx_row);
                if (baseline_skip(baseline, range->x0) != 0 || baseline_read_row(baseline, reading) != 0)
                        return BASELINE_HANDS_OVER;
                if (!is_last && baseline_skip(baseline, grid->n_mcus_x - range->x1) != 0)
                        return BASELINE_HANDS_OVER;
                if (end > y) {
                        r = band_give(&baseline->band, grid, baseline->kernels, idx_row, y, end, reading->box,
                                      reading->sink, reading->why);
                        if (r != 0)
                                return r;
                        y = end;
                }
                band_keep(&baseline->band, grid);
        }
        return 0;
}

/* Skips whole rows of MCUs above the box. */
static int skip_rows(struct baseline *baseline, uint32_t n_rows) {
        for (uint32_t i = 0; i < n_rows; i++)
                if (baseline_skip(baseline, baseline->grid.n_mcus_x) != 0)
                        return BASELINE_HANDS_OVER;
        return 0;
}

/* After the last MCU, libjpeg would check what follows it. */
static int baseline_check_end(struct baseline *baseline, const struct reading *reading) {
        const struct mcu_grid *grid = &baseline->grid;

        if (reading->range.y1 < grid->n_mcus_y || reading->range.x1 < grid->n_mcus_x)
                return 0;
        return entropy_end(&baseline->entropy);
}

int baseline_read(struct baseline *baseline, const struct box *box, const struct row_sink *sink, struct why *why) {
        struct reading reading = { .box = box, .sink = sink, .why = why };
        const struct jpeg_header *header = &baseline->header;
        int r;

        assert(baseline->is_open);
        assert(box->width > 0 && box->width <= header->width && box->x <= header->width - box->width);
        assert(box->height > 0 && box->height <= header->height && box->y <= header->height - box->height);

        baseline->is_open = false;
        r = baseline_prepare(baseline, &reading);
        if (r != 0)
                return r;
        if (skip_rows(baseline, reading.range.y0) != 0)
                return BASELINE_HANDS_OVER;
        r = sink->begin(sink->userdata, why);
        if (r != 0)
                return r;
        r = baseline_read_rows(baseline, &reading);
        return r != 0 ? r : baseline_check_end(baseline, &reading);
}
