/* augment/apply.c: executes the stages that fold.c has made. */
#include "daemon/augment/recipe.h"

#include "daemon/augment/alpha.h"
#include "daemon/augment/canvas.h"
#include "daemon/augment/fold.h"
#include "proto/base/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define N_BETWEEN 5u
#define ROWS      (N_BETWEEN - 1)

/* Decoding and resizing take turns, a band of rows each: a few microseconds. Two looks at the clock for each band would
 * be a hundredth of a picture's time, so only one band of this many is timed, and the others are taken to have cost as
 * much for each pixel. A prime number, so that it does not follow the rhythm of the rows. */
#define FEEDS_A_LOOK 5u

struct workspace {
        struct resizer *resizer;
        uint8_t *between[N_BETWEEN]; /* canvases of even and odd stages; the same for alpha; rows of an operation */
        size_t n_between_bytes[N_BETWEEN];

        /* The sample that is being fed. */
        const struct geometry *geometry;
        uint8_t *out;
        size_t stride;
        struct canvas canvas; /* of the stage that is being drawn */

        struct wanting wanting;

        struct stage_clock *clock;
        uint32_t n_feeds;         /* since the last look */
        uint64_t fed_ns, n_timed; /* of the sample: what looks have measured, and for how many pixels, */
        uint64_t n_fed;           /* of those that it was fed */
        double pixel_ns;          /* as measured last */
};

int workspace_new(enum resize_code code, struct workspace **ret_workspace, struct why *why) {
        _cleanup_(workspace_freep) struct workspace *workspace = calloc(1, sizeof(*workspace));
        int r;

        if (!workspace)
                return why_set(why, -ENOMEM, "no memory for a worker's workspace");
        r = resizer_new(code, &workspace->resizer, why);
        if (r < 0)
                return r;
        *ret_workspace = TAKE_PTR(workspace);
        return 0;
}

void workspace_set_clock(struct workspace *workspace, struct stage_clock *clock) {
        workspace->clock = clock;
}

void workspace_set_wanted(struct workspace *workspace, wanted_fn is_wanted, const void *userdata) {
        workspace->wanting = (struct wanting){ .is_wanted = is_wanted, .userdata = userdata };
}

static int be_told(const struct workspace *workspace, struct why *why) {
        return workspace->wanting.is_over ? why_set(why, -ECANCELED, "nobody wants the sample any more") : 0;
}

int workspace_ask(struct workspace *workspace, struct why *why) {
        wanting_lasts(&workspace->wanting);
        return be_told(workspace, why);
}

void workspace_trim(struct workspace *workspace) {
        resizer_trim(workspace->resizer);
        for (uint32_t i = 0; i < N_BETWEEN; i++) {
                free(workspace->between[i]);
                workspace->between[i] = NULL;
                workspace->n_between_bytes[i] = 0;
        }
}

void workspace_free(struct workspace *workspace) {
        if (!workspace)
                return;
        workspace_trim(workspace);
        resizer_free(workspace->resizer);
        free(workspace);
}

void workspace_freep(struct workspace **workspace) {
        workspace_free(*workspace);
}

size_t workspace_bytes(const struct workspace *workspace) {
        size_t n_bytes = resizer_bytes(workspace->resizer);

        for (uint32_t i = 0; i < N_BETWEEN; i++)
                n_bytes += workspace->n_between_bytes[i];
        return n_bytes;
}

static int reserve_between(struct workspace *workspace, uint32_t idx, size_t n_bytes, struct why *why) {
        if (n_bytes <= workspace->n_between_bytes[idx])
                return 0;
        free(workspace->between[idx]);
        workspace->n_between_bytes[idx] = 0;
        workspace->between[idx] = malloc(n_bytes);
        if (!workspace->between[idx])
                return why_set(why, -ENOMEM, "no memory for %zu bytes between two steps of the pipeline", n_bytes);
        workspace->n_between_bytes[idx] = n_bytes;
        return 0;
}

static bool apply_is_empty(const struct stage *stage) {
        return stage->window.width == 0;
}

/* Is the canvas of this stage in the workspace's memory? Otherwise it is the output itself. */
static bool is_between(const struct geometry *geometry, uint32_t idx) {
        return idx + 1 < geometry->n_stages || !geometry->is_direct;
}

static uint64_t apply_row_bytes(const struct operation *operation, uint32_t width, uint32_t height) {
        const struct operation_type *type = operation->type;

        return (uint64_t)type->n_rows * width * PIXEL_BYTES +
               (type->extra_bytes ? type->extra_bytes(operation, width, height) : 0);
}

static uint64_t warp_bytes(const struct stage *stage) {
        return warp_extra_bytes(&stage->warp, stage->canvas_width, stage->canvas_height);
}

/* Of the operation of a stage, or its warp, that needs most rows. */
static uint64_t most_row_bytes(const struct geometry *geometry, const struct stage *stage) {
        uint64_t most = warp_bytes(stage);

        for (uint32_t i = 0; i < stage->n_operations; i++) {
                const struct operation *operation = &geometry->operations[stage->first_operation + i];
                uint64_t n_bytes = apply_row_bytes(operation, stage->canvas_width, stage->canvas_height);

                most = n_bytes > most ? n_bytes : most;
        }
        return most;
}

uint64_t recipe_bytes_needed(const struct geometry *geometry) {
        uint64_t between[2] = { 0 }, rows = 0, resizer = 0;

        for (uint32_t i = 0; i < geometry->n_stages; i++) {
                const struct stage *stage = &geometry->stages[i];
                uint64_t canvas = (uint64_t)stage->canvas_width * stage->canvas_height * PIXEL_BYTES;
                uint64_t most_rows = most_row_bytes(geometry, stage);
                struct resize_job job = stage_resize_job(stage);

                rows = most_rows > rows ? most_rows : rows;
                if (is_between(geometry, i) && canvas > between[i % 2])
                        between[i % 2] = canvas;
                if (!apply_is_empty(stage) && stage->warp.kind == WARP_NONE)
                        resizer += resize_bytes_needed(stage->source.width, stage->source.height,
                                                       i == 0 ? &geometry->source : NULL, &job);
        }
        return (between[0] + between[1]) * (pixel_format_has_alpha(&geometry->conversion->format) ? 2 : 1) + rows +
               resizer;
}

/* The window's box on its canvas after mirroring left to right, which the resampling does. Top and bottom are exchanged
 * at the end. */
static struct box window_on_canvas(const struct stage *stage) {
        struct box place = { .width = stage->window.width, .height = stage->window.height };

        if (place.width > 0) {
                place.x = stage->flip ? stage->canvas_width - stage->paste_x - place.width : stage->paste_x;
                place.y = stage->paste_y;
        }
        return place;
}

/* Begins to draw the stage's own pixels into their place on the canvas. The source is still to come: all of it, or its
 * given part. */
static int apply_begin_window(struct workspace *workspace, const struct stage *stage, const struct box *given,
                              struct why *why) {
        struct box place = window_on_canvas(stage);
        struct resize_job job = stage_resize_job(stage);

        if (apply_is_empty(stage))
                return 0;
        return resizer_begin(workspace->resizer, stage->source.width, stage->source.height, given, &job,
                             canvas_at(&workspace->canvas, place.x, place.y), workspace->canvas.stride, why);
}

static void swap_rows(uint8_t *a, uint8_t *b, size_t n_bytes) {
        uint8_t kept[1024];

        for (size_t at = 0; at < n_bytes; at += sizeof(kept)) {
                size_t n = n_bytes - at < sizeof(kept) ? n_bytes - at : sizeof(kept);

                memcpy(kept, a + at, n);
                memcpy(a + at, b + at, n);
                memcpy(b + at, kept, n);
        }
}

/* Rows of the source that are read, or make, about a megapixel. */
static uint32_t rows_a_look(const struct stage *stage, const struct view *source) {
        uint64_t n_made = (uint64_t)stage->width * stage->height / source->height;
        uint64_t n_pixels = n_made > source->width ? n_made : source->width;

        return n_pixels < PIXELS_A_LOOK ? (uint32_t)(PIXELS_A_LOOK / n_pixels) : 1;
}

/* Feeds the window all of its source. */
static int feed_whole(struct workspace *workspace, const struct stage *stage, const struct view *source,
                      struct why *why) {
        uint32_t n_rows = rows_a_look(stage, source);
        int r = 0;

        for (uint32_t y = 0; y < source->height && r == 0; y += n_rows) {
                struct view rows = *source;

                rows.pixels += y * source->stride;
                rows.height = source->height - y < n_rows ? source->height - y : n_rows;
                resizer_feed(workspace->resizer, &rows);
                r = workspace_ask(workspace, why);
        }
        return r;
}

static int run_operation(struct workspace *workspace, const struct operation *operation, const struct canvas *canvas,
                         struct why *why) {
        struct operation with_rows = *operation;
        int r = workspace_ask(workspace, why);

        if (r == 0)
                r = reserve_between(workspace, ROWS, apply_row_bytes(operation, canvas->width, canvas->height), why);
        if (r < 0)
                return r;
        with_rows.rows = workspace->between[ROWS];
        stage_enter(workspace->clock, operation->step);
        operation->type->run(&with_rows, canvas);
        return be_told(workspace, why);
}

/* Everything after the window, done in the canvas itself. */
static int finish_canvas(struct workspace *workspace, const struct stage *stage, const struct canvas *canvas,
                         struct why *why) {
        const struct geometry *geometry = workspace->geometry;
        struct box place = window_on_canvas(stage);
        int r = 0;

        if (place.width < canvas->width || place.height < canvas->height) {
                stage_enter(workspace->clock, STAGE_PAD);
                border_draw(&stage->border, &place, canvas);
        }
        if (stage->vflip)
                stage_enter(workspace->clock, STAGE_VFLIP);
        if (stage->vflip)
                for (uint32_t y = 0; y < canvas->height / 2; y++)
                        swap_rows(canvas_at(canvas, 0, y), canvas_at(canvas, 0, canvas->height - 1 - y),
                                  (size_t)canvas->width * PIXEL_BYTES);
        for (uint32_t i = 0; i < stage->n_operations && r == 0; i++)
                r = run_operation(workspace, &geometry->operations[stage->first_operation + i], canvas, why);
        return r;
}

/* The source box of a stage, within the result of the stage before. */
static struct view apply_view_of(const struct canvas *canvas, const struct box *box) {
        assert(box->x + box->width <= canvas->width && box->y + box->height <= canvas->height);
        return (struct view){
                .pixels = canvas_at(canvas, box->x, box->y),
                .stride = canvas->stride,
                .width = box->width,
                .height = box->height,
        };
}

/* The canvas of a stage: the output itself, or memory of the workspace. */
static int find_canvas(struct workspace *workspace, uint32_t idx, struct why *why) {
        const struct geometry *geometry = workspace->geometry;
        const struct stage *stage = &geometry->stages[idx];
        struct canvas canvas = {
                .pixels = workspace->out,
                .stride = workspace->stride,
                .width = stage->canvas_width,
                .height = stage->canvas_height,
                .wanting = &workspace->wanting,
        };
        int r;

        if (is_between(geometry, idx)) {
                canvas.stride = (size_t)canvas.width * PIXEL_BYTES;
                r = reserve_between(workspace, idx % 2, canvas.stride * canvas.height, why);
                if (r < 0)
                        return r;
                canvas.pixels = workspace->between[idx % 2];
        }
        workspace->canvas = canvas;
        return 0;
}

static int apply_begin_stage(struct workspace *workspace, uint32_t idx, const struct box *given, struct why *why) {
        int r = find_canvas(workspace, idx, why);

        return r < 0 ? r : apply_begin_window(workspace, &workspace->geometry->stages[idx], given, why);
}

int recipe_begin(struct workspace *workspace, const struct geometry *geometry, uint8_t *out, size_t stride,
                 struct why *why) {
        const struct stage *first = &geometry->stages[0];
        struct box given = geometry->source;

        given.x -= first->source.x;
        given.y -= first->source.y;
        workspace->geometry = geometry;
        workspace->out = out;
        workspace->stride = stride;
        workspace->wanting.is_over = false;
        workspace->fed_ns = workspace->n_timed = workspace->n_fed = 0;
        return apply_begin_stage(workspace, 0, &given, why);
}

static void feed_and_look(struct workspace *workspace, const struct view *rows, uint64_t n_pixels) {
        uint64_t begin_ns = clock_now_ns();

        resizer_feed(workspace->resizer, rows);
        workspace->fed_ns += clock_now_ns() - begin_ns;
        workspace->n_timed += n_pixels;
        workspace->n_feeds = 0;
}

void recipe_feed(struct workspace *workspace, const struct view *rows) {
        uint64_t n_pixels = (uint64_t)rows->width * rows->height;

        if (apply_is_empty(&workspace->geometry->stages[0]))
                return;
        workspace->n_fed += n_pixels;
        if (workspace->clock && ++workspace->n_feeds == FEEDS_A_LOOK)
                feed_and_look(workspace, rows, n_pixels);
        else
                resizer_feed(workspace->resizer, rows);
}

/* What it was fed was decoded in between. */
static void settle_feeding(struct workspace *workspace) {
        if (!workspace->clock || workspace->n_fed == 0)
                return;
        if (workspace->n_timed > 0)
                workspace->pixel_ns = (double)workspace->fed_ns / (double)workspace->n_timed;
        stage_clock_move(workspace->clock, workspace->geometry->stages[0].drawn_by,
                         (uint64_t)(workspace->pixel_ns * (double)workspace->n_fed));
}

/* Stages after the first have their whole source: the canvas of the stage before. */
static int draw_next(struct workspace *workspace, uint32_t idx, struct why *why) {
        const struct stage *stage = &workspace->geometry->stages[idx];
        struct view source = apply_view_of(&workspace->canvas, &stage->source);
        int r = workspace_ask(workspace, why);

        if (r < 0)
                return r;
        stage_enter(workspace->clock, stage->drawn_by);
        if (stage->warp.kind != WARP_NONE) {
                r = find_canvas(workspace, idx, why);
                if (r == 0)
                        r = reserve_between(workspace, ROWS, warp_bytes(stage), why);
                if (r < 0)
                        return r;
                warp_run(&stage->warp, &source, &workspace->canvas, workspace->between[ROWS]);
                return be_told(workspace, why);
        }
        r = apply_begin_stage(workspace, idx, NULL, why);
        return r == 0 && !apply_is_empty(stage) ? feed_whole(workspace, stage, &source, why) : r;
}

static void apply_erase(const struct geometry *geometry, uint8_t *out, size_t stride) {
        for (uint32_t i = 0; i < geometry->n_erasures; i++)
                conversion_erase(geometry->conversion, &geometry->erasures[i], geometry->height, out, stride,
                                 geometry->plane_stride);
}

int recipe_end(struct workspace *workspace, struct why *why) {
        const struct geometry *geometry = workspace->geometry;
        int r;

        settle_feeding(workspace);
        r = finish_canvas(workspace, &geometry->stages[0], &workspace->canvas, why);
        for (uint32_t i = 1; i < geometry->n_stages && r == 0; i++) {
                r = draw_next(workspace, i, why);
                if (r == 0)
                        r = finish_canvas(workspace, &geometry->stages[i], &workspace->canvas, why);
        }
        if (r < 0 || geometry->is_direct)
                return r;
        stage_enter(workspace->clock, STAGE_CONVERT);
        conversion_run(geometry->conversion, &workspace->canvas, NULL, workspace->out, workspace->stride,
                       geometry->plane_stride);
        apply_erase(geometry, workspace->out, workspace->stride);
        return 0;
}

int recipe_run(struct workspace *workspace, const struct geometry *geometry, const struct view *source, uint8_t *out,
               size_t stride, struct why *why) {
        const struct stage *first = &geometry->stages[0];
        int r = recipe_begin(workspace, geometry, out, stride, why);

        if (r < 0)
                return r;
        stage_enter(workspace->clock, first->drawn_by);
        if (!apply_is_empty(first))
                r = feed_whole(workspace, first, source, why);
        return r < 0 ? r : recipe_end(workspace, why);
}

/* ---- colours and alpha --------------------------------------------------------------------------------------- */

enum {
        COLORS,
        ALPHA,
        N_LAYERS
};

/* Draws a layer's window out of its source, which is all of `given`. */
static int draw_layer(struct workspace *workspace, uint32_t layer, uint32_t idx, const struct box *given,
                      const struct canvas *source, struct canvas *ret_canvas, struct why *why) {
        const struct stage *stage = &workspace->geometry->stages[idx];
        struct canvas *canvas = &workspace->canvas;
        uint32_t idx_between = layer * 2 + idx % 2;
        struct view view = {
                .pixels = source->pixels, .stride = source->stride, .width = source->width, .height = source->height
        };
        int r;

        *canvas = (struct canvas){ .stride = (size_t)stage->canvas_width * PIXEL_BYTES,
                                   .width = stage->canvas_width,
                                   .height = stage->canvas_height,
                                   .wanting = &workspace->wanting };
        r = reserve_between(workspace, idx_between, canvas->stride * canvas->height, why);
        if (r == 0)
                r = reserve_between(workspace, ROWS, warp_bytes(stage), why);
        if (r < 0)
                return r;
        canvas->pixels = workspace->between[idx_between];
        *ret_canvas = *canvas;
        if (stage->warp.kind != WARP_NONE) {
                warp_run(&stage->warp, &view, canvas, workspace->between[ROWS]);
                return be_told(workspace, why);
        }
        r = apply_begin_window(workspace, stage, given, why);
        return r == 0 && !apply_is_empty(stage) ? feed_whole(workspace, stage, &view, why) : r;
}

static struct canvas apply_part_of(const struct canvas *canvas, const struct box *box) {
        return (struct canvas){ .pixels = canvas_at(canvas, box->x, box->y),
                                .stride = canvas->stride,
                                .width = box->width,
                                .height = box->height,
                                .wanting = canvas->wanting };
}

/* Does the stage mix pixels? Pillow does not multiply where it only chooses them. */
static bool is_mixing(const struct stage *stage) {
        if (stage->warp.kind != WARP_NONE)
                return warp_is_mixing(&stage->warp);
        return !apply_is_empty(stage) &&
               (stage->width != stage->source.width || stage->height != stage->source.height) &&
               !resize_chooses(stage->filter);
}

/* A stage for both layers: `sources` -> `canvases`. */
static int apply_run_stage(struct workspace *workspace, uint32_t idx, const struct box *given,
                           const struct canvas *sources, struct canvas *canvases, struct why *why) {
        const struct stage *stage = &workspace->geometry->stages[idx];
        struct stage without_operations = *stage;
        struct box place = window_on_canvas(stage);
        int r;

        r = workspace_ask(workspace, why);
        if (r < 0)
                return r;
        stage_enter(workspace->clock, stage->drawn_by);
        if (is_mixing(stage))
                alpha_multiply(&sources[COLORS], &sources[ALPHA]);
        for (uint32_t layer = 0; layer < N_LAYERS && r == 0; layer++)
                r = draw_layer(workspace, layer, idx, given, &sources[layer], &canvases[layer], why);
        if (r < 0)
                return r;
        if (is_mixing(stage)) {
                struct canvas colors = apply_part_of(&canvases[COLORS], &place),
                              alpha = apply_part_of(&canvases[ALPHA], &place);

                alpha_divide(&colors, &alpha);
        }
        without_operations.n_operations = 0;
        r = finish_canvas(workspace, stage, &canvases[COLORS], why);
        return r < 0 ? r : finish_canvas(workspace, &without_operations, &canvases[ALPHA], why);
}

int recipe_run_alpha(struct workspace *workspace, const struct geometry *geometry, uint8_t *colors, uint8_t *alpha,
                     uint8_t *out, size_t stride, struct why *why) {
        struct canvas sources[N_LAYERS], canvases[N_LAYERS];
        struct box given = geometry->source;

        given.x -= geometry->stages[0].source.x;
        given.y -= geometry->stages[0].source.y;
        workspace->geometry = geometry;
        workspace->wanting.is_over = false;
        for (uint32_t layer = 0; layer < N_LAYERS; layer++)
                sources[layer] = (struct canvas){ .pixels = layer == COLORS ? colors : alpha,
                                                  .stride = (size_t)given.width * PIXEL_BYTES,
                                                  .width = given.width,
                                                  .height = given.height };
        for (uint32_t i = 0; i < geometry->n_stages; i++) {
                int r = apply_run_stage(workspace, i, i == 0 ? &given : NULL, sources, canvases, why);

                if (r < 0)
                        return r;
                for (uint32_t layer = 0; layer < N_LAYERS && i + 1 < geometry->n_stages; layer++)
                        sources[layer] = apply_part_of(&canvases[layer], &geometry->stages[i + 1].source);
        }
        stage_enter(workspace->clock, STAGE_CONVERT);
        conversion_run(geometry->conversion, &canvases[COLORS], &canvases[ALPHA], out, stride, geometry->plane_stride);
        apply_erase(geometry, out, stride);
        return 0;
}
