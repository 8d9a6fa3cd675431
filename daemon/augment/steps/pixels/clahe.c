/* augment/steps/pixels/clahe.c: Albumentations' CLAHE, which is OpenCV's, of a grey picture, or of the lightness L of
 * CIE L*a*b* (lab.h). Draws two f32: below p means yes; and the limit.
 *
 * The picture is divided into tiles. Each has a table that spreads its levels (as equalize does), but no level counts
 * more often than the limit allows, and what is above that is distributed to all levels. A pixel is looked up in the
 * tables of the four tiles around it, and the results are weighed by its distance from their centres, in float32. */
#include "daemon/augment/operations/lab.h"
#include "daemon/augment/operations/mirror.h"
#include "daemon/augment/operations/pixel_planes.h"
#include "daemon/augment/step.h"

#include <math.h>
#include <string.h>

#define N_LEVELS 256u

/* Between which two tiles a row or a column is, and how near it is to the second one. */
struct place {
        uint32_t gap;             /* before the first tile is 0, between it and the second 1, after the last n_tiles */
        float share, other_share; /* of the second; of the first */
};

/* Pixels of a row: where their gap's levels start in `around`, and their shares. */
struct columns {
        uint32_t *starts;
        float *shares, *other_shares;
};

struct clahe {
        const struct canvas *canvas;
        uint32_t n_across, n_down, tile_width, tile_height;
        uint8_t (*tables)[N_LEVELS];
        /* For the rows of one gap: what a level becomes by the four tiles around each gap of the columns, a byte each:
         * left above, right above, left below, right below. */
        uint32_t (*around)[N_LEVELS];
        struct columns columns;
};

static uint64_t around_bytes(uint32_t n_across) {
        return (n_across + 1ull) * N_LEVELS * sizeof(uint32_t);
}

/* Columns of whole planes. */
static uint32_t computed(uint32_t width) {
        return (width + PLANES_AT_ONCE - 1) / PLANES_AT_ONCE * PLANES_AT_ONCE;
}

/* What is around gaps, the three numbers of each column, and the tables of all tiles. */
static uint64_t extra_bytes(const struct operation *operation, uint32_t width, uint32_t height) {
        (void)height;
        return around_bytes(operation->box.width) + (uint64_t)computed(width) * (sizeof(uint32_t) + 2 * sizeof(float)) +
               (uint64_t)operation->box.width * operation->box.height * N_LEVELS;
}

/* ---- tables -------------------------------------------------------------------------------------------------- */

/* If the picture cannot be divided into equal tiles, it is mirrored to the right and below: in both directions, and by
 * a pixel for each tile in a direction that could be divided. */
static void size_tiles(struct clahe *clahe) {
        uint32_t width = clahe->canvas->width, height = clahe->canvas->height;

        if (width % clahe->n_across != 0 || height % clahe->n_down != 0) {
                width += clahe->n_across - width % clahe->n_across;
                height += clahe->n_down - height % clahe->n_down;
        }
        clahe->tile_width = width / clahe->n_across;
        clahe->tile_height = height / clahe->n_down;
}

/* Neighbours often have the same level, and a count is added to sooner if it was not added to just before. */
#define N_COUNTS 4u

static void count_row(const uint8_t *levels, uint32_t n, uint32_t counts[N_COUNTS][N_LEVELS]) {
        uint32_t x = 0;

        for (; x + N_COUNTS <= n; x += N_COUNTS, levels += (size_t)N_COUNTS * PIXEL_BYTES) {
                counts[0][levels[0]]++;
                counts[1][levels[PIXEL_BYTES]]++;
                counts[2][levels[2 * PIXEL_BYTES]]++;
                counts[3][levels[3 * PIXEL_BYTES]]++;
        }
        for (; x < n; x++, levels += PIXEL_BYTES)
                counts[0][levels[0]]++;
}

static void count_tile(const struct clahe *clahe, uint32_t column, uint32_t row, uint32_t *ret_counts) {
        uint32_t left = column * clahe->tile_width, top = row * clahe->tile_height, width = clahe->canvas->width;
        uint32_t n_within = left >= width ? 0 : width - left < clahe->tile_width ? width - left : clahe->tile_width;
        uint32_t counts[N_COUNTS][N_LEVELS] = { 0 };

        for (uint32_t y = top; y < top + clahe->tile_height; y++) {
                const uint8_t *levels = canvas_at(clahe->canvas, 0, mirrored(y, clahe->canvas->height));

                count_row(levels + (size_t)left * PIXEL_BYTES, n_within, counts);
                for (uint32_t x = left + n_within; x < left + clahe->tile_width; x++)
                        counts[0][levels[(size_t)mirrored(x, width) * PIXEL_BYTES]]++;
        }
        for (uint32_t i = 0; i < N_LEVELS; i++)
                ret_counts[i] = counts[0][i] + counts[1][i] + counts[2][i] + counts[3][i];
}

static ALWAYS_INLINE void cut_counts_loop(uint32_t *counts, uint32_t limit, uint32_t *ret_n_above) {
        uint32_t n_above = 0;

        for (uint32_t i = 0; i < N_LEVELS; i++) {
                uint32_t kept = counts[i] < limit ? counts[i] : limit;

                n_above += counts[i] - kept;
                counts[i] = kept;
        }
        for (uint32_t i = 0; i < N_LEVELS; i++)
                counts[i] += n_above / N_LEVELS;
        *ret_n_above = n_above;
}

WIDE(cut_counts, (uint32_t * counts, uint32_t limit, uint32_t *ret_n_above), (counts, limit, ret_n_above))

/* What is above the limit goes to all levels alike; what is left of it, one each, to levels at equal distances. */
static void limit_counts(uint32_t *counts, uint32_t limit) {
        uint32_t n_above, n_left, distance;

        cut_counts(counts, limit, &n_above);
        n_left = n_above % N_LEVELS;
        distance = n_left > 0 ? N_LEVELS / n_left : 1;
        for (uint32_t i = 0; i < N_LEVELS && n_left > 0; i += distance, n_left--)
                counts[i]++;
}

/* Rounded, half to even: 2^23 leaves no digits after the point. */
static ALWAYS_INLINE int clahe_rounded(float level) {
        return (int)((level + 0x1p23f) - 0x1p23f);
}

/* A sum is a number of pixels, below 2^31. */
static ALWAYS_INLINE void scale_sums_loop(const uint32_t *sums, float scale, uint8_t *restrict table) {
        for (uint32_t level = 0; level < N_LEVELS; level++) {
                int result = clahe_rounded((float)(int32_t)sums[level] * scale);

                table[level] = (uint8_t)(result > 255 ? 255 : result);
        }
}

WIDE(scale_sums, (const uint32_t *sums, float scale, uint8_t *table), (sums, scale, table))

static void clahe_make_tables(struct clahe *clahe, float clip_limit) {
        uint32_t n_pixels = clahe->tile_width * clahe->tile_height;
        double limit = (double)clip_limit * n_pixels / N_LEVELS;
        float scale = 255.0f / (float)n_pixels;

        for (uint32_t i = 0; i < clahe->n_across * clahe->n_down; i++) {
                uint32_t counts[N_LEVELS];

                count_tile(clahe, i % clahe->n_across, i / clahe->n_across, counts);
                limit_counts(counts, limit < 1 ? 1 : limit > n_pixels ? n_pixels : (uint32_t)limit);
                for (uint32_t level = 1; level < N_LEVELS; level++)
                        counts[level] += counts[level - 1];
                scale_sums(counts, scale, clahe->tables[i]);
        }
}

/* ---- pixels -------------------------------------------------------------------------------------------------- */

static struct place clahe_place_of(uint32_t at, uint32_t tile_length) {
        float tiles = (float)at * (1.0f / (float)tile_length) - 0.5f, first = floorf(tiles);
        struct place place = { .gap = (uint32_t)(int32_t)(first + 1), .share = tiles - first };

        place.other_share = 1.0f - place.share;
        return place;
}

/* The tiles before and after a gap; beside the outermost there are none, and they are taken twice. */
static uint32_t before(uint32_t gap) {
        return gap == 0 ? 0 : gap - 1;
}

static uint32_t clahe_after(uint32_t gap, uint32_t n_tiles) {
        return gap < n_tiles ? gap : n_tiles - 1;
}

static ALWAYS_INLINE void join_loop(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d,
                                    uint32_t *restrict joined) {
        for (uint32_t i = 0; i < N_LEVELS; i++)
                joined[i] = a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24;
}

WIDE(join, (const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d, uint32_t *joined),
     (a, b, c, d, joined))

static void join_around(const struct clahe *clahe, uint32_t row_gap) {
        const uint8_t(*above)[N_LEVELS] = (const uint8_t(*)[N_LEVELS])clahe->tables +
                                          (size_t)before(row_gap) * clahe->n_across;
        const uint8_t(*below)[N_LEVELS] = (const uint8_t(*)[N_LEVELS])clahe->tables +
                                          (size_t)clahe_after(row_gap, clahe->n_down) * clahe->n_across;

        for (uint32_t gap = 0; gap <= clahe->n_across; gap++) {
                uint32_t left = before(gap), right = clahe_after(gap, clahe->n_across);

                join(above[left], above[right], below[left], below[right], clahe->around[gap]);
        }
}

static ALWAYS_INLINE float clahe_level_of(uint32_t around, unsigned which) {
        return (float)(int)(around >> 8 * which & 255);
}

static ALWAYS_INLINE void mix_loop(const uint32_t *around, const struct columns *columns, uint32_t x,
                                   const struct place *row, uint8_t *restrict levels) {
        const uint32_t *starts = columns->starts + x;
        const float *shares = columns->shares + x, *other_shares = columns->other_shares + x;
        float share = row->share, other_share = row->other_share;

        for (uint32_t i = 0; i < PLANES_AT_ONCE; i++) {
                uint32_t four = around[starts[i] + levels[i]];
                float above = clahe_level_of(four, 0) * other_shares[i] + clahe_level_of(four, 1) * shares[i];
                float below = clahe_level_of(four, 2) * other_shares[i] + clahe_level_of(four, 3) * shares[i];

                levels[i] = (uint8_t)clahe_rounded(above * other_share + below * share);
        }
}

WIDE(mix, (const uint32_t *around, const struct columns *columns, uint32_t x, const struct place *row, uint8_t *levels),
     (around, columns, x, row, levels))

static void change_row(const struct clahe *clahe, uint32_t y, const struct place *row) {
        struct planes planes = {};

        for (uint32_t x = 0; x < clahe->canvas->width; x += PLANES_AT_ONCE) {
                uint32_t left = clahe->canvas->width - x, n = left < PLANES_AT_ONCE ? left : PLANES_AT_ONCE;
                uint8_t *pixels = canvas_at(clahe->canvas, x, y);

                planes_take(pixels, n, &planes);
                mix(clahe->around[0], &clahe->columns, x, row, planes.first);
                planes_put(&planes, n, pixels);
        }
}

static void clahe_place_columns(struct clahe *clahe, uint32_t n) {
        for (uint32_t x = 0; x < n; x++) {
                struct place place = clahe_place_of(x, clahe->tile_width);

                /* After the picture nothing is shown, but whole numbers of columns are computed. */
                clahe->columns.starts[x] = x < clahe->canvas->width ? place.gap * N_LEVELS : 0;
                clahe->columns.shares[x] = place.share;
                clahe->columns.other_shares[x] = place.other_share;
        }
}

static void change_rows(const struct clahe *clahe) {
        uint32_t gap = UINT32_MAX;

        for (uint32_t y = 0; y < clahe->canvas->height && canvas_goes_on(clahe->canvas, y); y++) {
                struct place row = clahe_place_of(y, clahe->tile_height);

                if (row.gap != gap)
                        join_around(clahe, row.gap);
                gap = row.gap;
                change_row(clahe, y, &row);
        }
}

static void spread_grey(const struct canvas *canvas) {
        for (uint32_t y = 0; y < canvas->height; y++) {
                uint8_t *pixel = canvas_at(canvas, 0, y);

                for (uint32_t x = 0; x < canvas->width; x++, pixel += PIXEL_BYTES)
                        pixel[1] = pixel[2] = pixel[0];
        }
}

static void run(const struct operation *operation, const struct canvas *canvas) {
        struct clahe clahe = { .canvas = canvas, .n_across = operation->box.width, .n_down = operation->box.height };
        uint32_t n_columns = computed(canvas->width);

        clahe.around = (uint32_t(*)[N_LEVELS])(void *)operation->rows;
        clahe.columns.starts = clahe.around[clahe.n_across + 1];
        clahe.columns.shares = (float *)(clahe.columns.starts + n_columns);
        clahe.columns.other_shares = clahe.columns.shares + n_columns;
        clahe.tables = (uint8_t(*)[N_LEVELS])(clahe.columns.other_shares + n_columns);
        if (!operation->is_grey)
                lab_from_rgb(canvas);
        size_tiles(&clahe);
        clahe_make_tables(&clahe, operation->amount);
        clahe_place_columns(&clahe, n_columns);
        change_rows(&clahe);
        if (operation->is_grey)
                spread_grey(canvas);
        else
                lab_to_rgb(canvas);
}

static const struct operation_type change = {
        .moves_with_flip = false, /* tiles begin at the left and at the top */
        .moves_with_crop = false,
        .extra_bytes = extra_bytes,
        .run = run,
};

/* ---- the step ------------------------------------------------------------------------------------------------ */

enum {
        CLIP_LIMIT,
        TILE_GRID_SIZE,
        PROBABILITY
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        const struct value *tiles = &values[TILE_GRID_SIZE];
        struct operation operation = { .type = &change };
        bool happens = step_happens(&values[PROBABILITY], philox);
        struct value limit = values[CLIP_LIMIT];
        const double up_to[] = { 1, limit.list[0] };

        (void)why;
        if (limit.n_list == 1) { /* the largest one */
                limit.list = up_to;
                limit.n_list = 2;
        }
        operation.amount = number_between(&limit, philox);
        operation.box.width = (uint32_t)tiles->list[0];
        operation.box.height = (uint32_t)tiles->list[tiles->n_list - 1];
        if (happens)
                fold_operate(fold, &operation);
        return 0;
}

const struct step_type step_clahe = {
        .kind = { .name = "clahe",
                  .doc = "Makes the levels of each of WIDTH:HEIGHT tiles (1 to 64) nearly equally frequent, where no "
                         "level counts more than `clip_limit` times as often as it would on average (FROM:TO, of "
                         "which one number is the last; 1 to 10000). Of colours it changes the lightness L of CIE "
                         "L*a*b*. The bits are those of OpenCV.",
                  .like = "albumentations.CLAHE",
                  .example = "clahe(4)",
                  .arguments = ARGUMENTS([CLIP_LIMIT] = { ARGUMENT_LIST, "clip_limit", "4", 1, 10000,
                                                          .counts = 1u << 1 | 1u << 2, .is_range = true,
                                                          .form = "TO or FROM:TO" },
                                         [TILE_GRID_SIZE] = { ARGUMENT_LIST, "tile_grid_size", "8", 1, 64,
                                                              .counts = 1u << 1 | 1u << 2, .is_whole = true,
                                                              .form = "N or WIDTH:HEIGHT" },
                                         [PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .stage = STAGE_CLAHE,
        .plan = plan,
        .convert = levels_check,
};
