/* augment/operations/clahe.c: OpenCV's CLAHE, of a grey picture, or of the lightness L of CIE L*a*b* (lab.h).
 *
 * The picture is divided into tiles. Each has a table that spreads its levels (as equalize does), but no level counts
 * more often than the limit allows, and what is above that is distributed to all levels. A pixel is looked up in the
 * tables of the four tiles around it, and the results are weighed by its distance from their centres, in float32. */
#include "daemon/augment/operation.h"
#include "daemon/augment/operations/lab.h"
#include "daemon/augment/operations/mirror.h"

#include <math.h>
#include <string.h>

#define N_LEVELS 256u

/* Between which two tiles a row or a column is, and how near it is to the second one. */
struct place {
        uint32_t first, second;
        float share, other_share; /* of the second; of the first */
};

struct clahe {
        const struct canvas *canvas;
        uint32_t n_across, n_down, tile_width, tile_height;
        uint8_t (*tables)[N_LEVELS];
        struct place *columns;
};

/* Tables of all tiles, and the places of the columns. */
static uint64_t extra_bytes(const struct operation *operation, uint32_t width, uint32_t height) {
        (void)height;
        return (uint64_t)width * sizeof(struct place) +
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

static void count_tile(const struct clahe *clahe, uint32_t column, uint32_t row, uint32_t *ret_counts) {
        uint32_t left = column * clahe->tile_width, top = row * clahe->tile_height;

        memset(ret_counts, 0, N_LEVELS * sizeof(*ret_counts));
        for (uint32_t y = top; y < top + clahe->tile_height; y++) {
                const uint8_t *levels = canvas_at(clahe->canvas, 0, mirrored(y, clahe->canvas->height));

                for (uint32_t x = left; x < left + clahe->tile_width; x++) {
                        uint32_t at = x < clahe->canvas->width ? x : mirrored(x, clahe->canvas->width);

                        ret_counts[levels[(size_t)at * PIXEL_BYTES]]++;
                }
        }
}

/* What is above the limit goes to all levels alike; what is left of it, one each, to levels at equal distances. */
static void limit_counts(uint32_t *counts, uint32_t limit) {
        uint32_t n_above = 0, n_left, distance;

        for (uint32_t i = 0; i < N_LEVELS; i++)
                if (counts[i] > limit) {
                        n_above += counts[i] - limit;
                        counts[i] = limit;
                }
        for (uint32_t i = 0; i < N_LEVELS; i++)
                counts[i] += n_above / N_LEVELS;
        n_left = n_above % N_LEVELS;
        distance = n_left > 0 ? N_LEVELS / n_left : 1;
        for (uint32_t i = 0; i < N_LEVELS && n_left > 0; i += distance, n_left--)
                counts[i]++;
}

static void make_tables(struct clahe *clahe, float clip_limit) {
        uint32_t n_pixels = clahe->tile_width * clahe->tile_height;
        double limit = (double)clip_limit * n_pixels / N_LEVELS;
        float scale = 255.0f / (float)n_pixels;

        for (uint32_t i = 0; i < clahe->n_across * clahe->n_down; i++) {
                uint32_t counts[N_LEVELS], sum = 0;

                count_tile(clahe, i % clahe->n_across, i / clahe->n_across, counts);
                limit_counts(counts, limit < 1 ? 1 : limit > n_pixels ? n_pixels : (uint32_t)limit);
                for (uint32_t level = 0; level < N_LEVELS; level++) {
                        float result;

                        sum += counts[level];
                        result = rintf((float)sum * scale);
                        clahe->tables[i][level] = (uint8_t)(result > 255 ? 255 : result);
                }
        }
}

/* ---- pixels -------------------------------------------------------------------------------------------------- */

static struct place place_of(uint32_t at, uint32_t tile_length, uint32_t n_tiles) {
        float tiles = (float)at * (1.0f / (float)tile_length) - 0.5f, first = floorf(tiles);
        struct place place = { .share = tiles - first };

        place.other_share = 1.0f - place.share;
        place.first = first < 0 ? 0 : (uint32_t)first;
        place.second = first < 0 ? 0 : (uint32_t)first + 1;
        if (place.second > n_tiles - 1)
                place.second = n_tiles - 1;
        return place;
}

static void change_row(const struct clahe *clahe, uint32_t y) {
        struct place row = place_of(y, clahe->tile_height, clahe->n_down);
        uint8_t(*above)[N_LEVELS] = clahe->tables + (size_t)row.first * clahe->n_across;
        uint8_t(*below)[N_LEVELS] = clahe->tables + (size_t)row.second * clahe->n_across;
        uint8_t *level = canvas_at(clahe->canvas, 0, y);

        for (uint32_t x = 0; x < clahe->canvas->width; x++, level += PIXEL_BYTES) {
                const struct place *column = &clahe->columns[x];
                float result = ((float)above[column->first][*level] * column->other_share +
                                (float)above[column->second][*level] * column->share) *
                                       row.other_share +
                               ((float)below[column->first][*level] * column->other_share +
                                (float)below[column->second][*level] * column->share) *
                                       row.share;

                *level = (uint8_t)lrintf(result);
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

        clahe.columns = (struct place *)operation->rows;
        clahe.tables = (uint8_t(*)[N_LEVELS])(clahe.columns + canvas->width);
        if (!operation->is_grey)
                lab_from_rgb(canvas);
        size_tiles(&clahe);
        make_tables(&clahe, operation->amount);
        for (uint32_t x = 0; x < canvas->width; x++)
                clahe.columns[x] = place_of(x, clahe.tile_width, clahe.n_across);
        for (uint32_t y = 0; y < canvas->height; y++)
                change_row(&clahe, y);
        if (operation->is_grey)
                spread_grey(canvas);
        else
                lab_to_rgb(canvas);
}

const struct operation_type operation_clahe = {
        .name = "clahe",
        .moves_with_flip = false, /* tiles begin at the left and at the top */
        .moves_with_crop = false,
        .extra_bytes = extra_bytes,
        .run = run,
};
