#include "daemon/augment/fold.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

static struct stage *current(const struct fold *fold) {
        return &fold->geometry->stages[fold->geometry->n_stages - 1];
}

static void fold_begin_stage(struct fold *fold, uint32_t width, uint32_t height) {
        struct box whole = { .width = width, .height = height };

        assert(fold->geometry->n_stages < STAGES_MAX);
        fold->geometry->stages[fold->geometry->n_stages++] = (struct stage){
                .source = whole,
                .width = width,
                .height = height,
                .filter = RESIZE_BILINEAR,
                .drawn_by = STAGE_MOVE,
                .window = whole,
                .canvas_width = width,
                .canvas_height = height,
                .first_operation = fold->geometry->n_operations,
        };
}

void fold_init(struct fold *fold, struct geometry *geometry, uint32_t width, uint32_t height,
               const struct conversion *conversion) {
        fold->geometry = geometry;
        fold->motions = NULL;
        fold->view = 0;
        fold->step = STAGE_OTHER;
        fold->is_mask = fold->is_left = fold->is_formed = false;
        fold->is_grey = conversion->format.mode == PIXELS_L;
        geometry->conversion = conversion;
        geometry->n_stages = geometry->n_operations = geometry->n_erasures = 0;
        geometry->plane_stride = 0;
        geometry->left = (struct dlp_left_operations){ 0 };
        fold_begin_stage(fold, width, height);
}

uint32_t fold_width(const struct fold *fold) {
        return current(fold)->canvas_width;
}

uint32_t fold_height(const struct fold *fold) {
        return current(fold)->canvas_height;
}

static bool is_resampled(const struct stage *stage) {
        return stage->width != stage->source.width || stage->height != stage->source.height;
}

static bool is_padded(const struct stage *stage) {
        return stage->window.width != stage->canvas_width || stage->window.height != stage->canvas_height;
}

/* A border that is made of the picture's own pixels. */
static bool has_picture_border(const struct stage *stage) {
        return is_padded(stage) && stage->border.mode != BORDER_CONSTANT;
}

static bool is_warped(const struct stage *stage) {
        return stage->warp.kind != WARP_NONE;
}

/* May a crop, or a flip, be done before the stage's operations, or its warp, instead of after them? */
static bool operations_allow(const struct fold *fold, bool crop) {
        const struct stage *stage = current(fold);

        if (is_warped(stage))
                return false;
        for (uint32_t i = 0; i < stage->n_operations; i++) {
                const struct operation_type *type = fold->geometry->operations[stage->first_operation + i].type;

                if (crop ? !type->moves_with_crop : !type->moves_with_flip)
                        return false;
        }
        return true;
}

/* If the pixels are not resampled, a window of them is the same as a smaller source. */
static void fold_window(struct stage *stage) {
        if (is_resampled(stage) || is_warped(stage) || stage->window.width == 0)
                return;
        stage->source.x += stage->window.x;
        stage->source.y += stage->window.y;
        stage->source.width = stage->width = stage->window.width;
        stage->source.height = stage->height = stage->window.height;
        stage->window.x = stage->window.y = 0;
}

/* Checks the size of a result that lies in a worker's memory, not in the output. */
int fold_check(const struct fold *fold, struct why *why) {
        uint32_t width = fold_width(fold), height = fold_height(fold);

        if ((uint64_t)width * height > RECIPE_BETWEEN_PIXELS_MAX)
                return why_set(why, -EFBIG,
                               "%" PRIu32 " x %" PRIu32 " pixels between two steps of the pipeline are above the limit"
                               " of %llu pixels",
                               width, height, RECIPE_BETWEEN_PIXELS_MAX);
        return 0;
}

static int begin_next(struct fold *fold, struct why *why) {
        uint32_t width = fold_width(fold), height = fold_height(fold);
        int r = fold_check(fold, why);

        if (r < 0)
                return r;
        fold_window(current(fold));
        fold_begin_stage(fold, width, height);
        return 0;
}

/* One axis of a crop: the remaining part of a window of `length` pixels that begins at `window` and is pasted at
 * `paste`, if [crop, crop + n) of the canvas is kept. */
static void crop_axis(uint32_t *window, uint32_t *length, uint32_t *paste, uint32_t crop, uint32_t n) {
        uint32_t begin = *paste > crop ? *paste : crop;
        uint32_t end = *paste + *length < crop + n ? *paste + *length : crop + n;

        if (end <= begin) { /* only padding is left */
                *length = 0;
                *paste = 0;
                return;
        }
        *window += begin - *paste;
        *length = end - begin;
        *paste = begin - crop;
}

int fold_crop(struct fold *fold, const struct box *box, struct why *why) {
        struct stage *stage = current(fold);
        uint32_t x, y;
        int r;

        assert(box->width > 0 && box->width <= stage->canvas_width && box->x <= stage->canvas_width - box->width);
        assert(box->height > 0 && box->height <= stage->canvas_height && box->y <= stage->canvas_height - box->height);

        motions_shift(fold->motions, -(float)box->x, -(float)box->y, box->width, box->height);
        if (box->width == stage->canvas_width && box->height == stage->canvas_height)
                return 0;
        if (has_picture_border(stage) || !operations_allow(fold, true)) { /* the crop would drop needed pixels */
                r = begin_next(fold, why);
                if (r < 0)
                        return r;
                stage = current(fold);
        }

        x = stage->flip ? stage->canvas_width - box->x - box->width : box->x;
        y = stage->vflip ? stage->canvas_height - box->y - box->height : box->y;
        crop_axis(&stage->window.x, &stage->window.width, &stage->paste_x, x, box->width);
        crop_axis(&stage->window.y, &stage->window.height, &stage->paste_y, y, box->height);
        if (stage->window.width == 0 || stage->window.height == 0)
                stage->window.width = stage->window.height = 0;
        stage->canvas_width = box->width;
        stage->canvas_height = box->height;
        return 0;
}

static int check_mask_fill(const struct fold *fold, const uint8_t *fill, struct why *why) {
        if (fold->is_mask && memcmp(fill, fill + 1, PIXEL_BYTES - 1) != 0)
                return why_set(why, -EINVAL, "is a mask, and the steps pad with a colour: give fill one number");
        return 0;
}

/* The number of 16 bits is in the first two bytes, and the fill has one of 8 bits. */
static void fill_one_number(const struct fold *fold, uint8_t *fill) {
        if (fold->geometry->conversion->format.mode == PIXELS_I16)
                fill[1] = fill[2] = 0;
}

int fold_pad(struct fold *fold, const struct padding *padding, const struct border *border, struct why *why) {
        struct stage *stage = current(fold);
        int r;

        assert(padding->left <= RECIPE_PADDING_MAX && padding->right <= RECIPE_PADDING_MAX);
        assert(padding->top <= RECIPE_PADDING_MAX && padding->bottom <= RECIPE_PADDING_MAX);

        if (padding->left + padding->right + padding->top + padding->bottom == 0)
                return 0;
        if (border->mode == BORDER_CONSTANT) {
                r = check_mask_fill(fold, border->fill, why);
                if (r < 0)
                        return r;
        }
        if (stage->n_operations > 0 || is_warped(stage) ||
            (is_padded(stage) && !border_is_same_colour(&stage->border, border))) {
                r = begin_next(fold, why);
                if (r < 0)
                        return r;
                stage = current(fold);
        }

        motions_shift(fold->motions, (float)padding->left, (float)padding->top,
                      (uint64_t)stage->canvas_width + padding->left + padding->right,
                      (uint64_t)stage->canvas_height + padding->top + padding->bottom);
        stage->border = *border;
        fill_one_number(fold, stage->border.fill);
        stage->paste_x += stage->flip ? padding->right : padding->left;
        stage->paste_y += stage->vflip ? padding->bottom : padding->top;
        stage->canvas_width += padding->left + padding->right;
        stage->canvas_height += padding->top + padding->bottom;
        return 0;
}

int fold_warp(struct fold *fold, const struct warp *warp, uint32_t width, uint32_t height, struct why *why) {
        enum pixel_mode mode = fold->geometry->conversion->format.mode;
        struct stage *stage;
        int r = check_mask_fill(fold, warp->fill, why);

        if (r < 0)
                return r;
        r = begin_next(fold, why);
        if (r < 0)
                return r;
        stage = current(fold);
        stage->warp = *warp;
        if (mode == PIXELS_P || mode == PIXELS_I16)
                stage->warp.filter = WARP_NEAREST; /* of 16 bits, another one was refused */
        stage->warp.is_exact = mode == PIXELS_I16;
        fill_one_number(fold, stage->warp.fill);
        stage->drawn_by = fold->step;
        stage->width = stage->window.width = stage->canvas_width = width;
        stage->height = stage->window.height = stage->canvas_height = height;
        return fold_check(fold, why);
}

static int prepare_flip(struct fold *fold, struct why *why) {
        return operations_allow(fold, false) ? 0 : begin_next(fold, why);
}

/* An operation gives the same on a mirrored picture, so how the two follow one another need not be noted. */
static int leave_flip(struct fold *fold, uint32_t flip) {
        fold->geometry->left.flips ^= flip;
        return 0;
}

int fold_flip(struct fold *fold, struct why *why) {
        int r;

        if (fold->is_left)
                return leave_flip(fold, DLP_LEFT_MIRRORED);
        r = prepare_flip(fold, why);
        if (r < 0)
                return r;
        motions_hflip(fold->motions, fold_width(fold));
        current(fold)->flip = !current(fold)->flip;
        return 0;
}

int fold_vflip(struct fold *fold, struct why *why) {
        int r;

        if (fold->is_left)
                return leave_flip(fold, DLP_LEFT_UPSIDE_DOWN);
        r = prepare_flip(fold, why);
        if (r < 0)
                return r;
        motions_vflip(fold->motions, fold_height(fold));
        current(fold)->vflip = !current(fold)->vflip;
        return 0;
}

static void leave_operation(struct dlp_left_operations *left, const struct operation *operation) {
        assert(left->n_operations < DLP_LEFT_OPERATIONS_MAX);
        assert(operation->type->left_kind && operation->type->moves_with_flip); /* leave_flip() */
        left->operations[left->n_operations++] = (struct dlp_left_operation){ .kind = operation->type->left_kind,
                                                                              .amount = operation->amount };
}

void fold_operate(struct fold *fold, const struct operation *operation) {
        struct geometry *geometry = fold->geometry;

        if (fold->is_mask)
                return;
        if (fold->is_left) {
                leave_operation(&geometry->left, operation);
                return;
        }
        assert(geometry->n_operations < DLP_STEPS_MAX * STEP_OPERATIONS_MAX);
        geometry->operations[geometry->n_operations] = *operation;
        geometry->operations[geometry->n_operations].is_grey = fold->is_grey;
        geometry->operations[geometry->n_operations++].step = fold->step;
        current(fold)->n_operations++;
}

void fold_erase(struct fold *fold, const struct box *box, const double *numbers, uint32_t n_numbers, uint64_t seed) {
        struct geometry *geometry = fold->geometry;
        struct erasure erasure = { .box = *box, .is_noise = n_numbers == 0, .seed = seed };

        if (fold->is_mask)
                return;
        assert(geometry->n_erasures < DLP_STEPS_MAX);
        for (uint32_t i = 0; i < CHANNELS_MAX && n_numbers > 0; i++)
                erasure.values[i] = (float)numbers[i < n_numbers ? i : 0];
        geometry->erasures[geometry->n_erasures++] = erasure;
}

static int check_sides(const struct stage *stage, uint64_t width, uint64_t height, struct why *why) {
        const uint64_t limit = RECIPE_RESAMPLED_SIDE_MAX;

        if (width > limit || height > limit || stage->canvas_width > limit || stage->canvas_height > limit)
                return why_set(why, -EFBIG,
                               "resizing %" PRIu32 " x %" PRIu32 " pixels to %" PRIu64 " x %" PRIu64
                               " is above the limit of %" PRIu64 " pixels a side",
                               stage->canvas_width, stage->canvas_height, width, height, limit);
        return 0;
}

/* Numbers are never mixed, whatever filter is asked for. */
static enum resize_filter fold_filter_of(const struct fold *fold, enum resize_filter filter) {
        if (fold->is_mask)
                return RESIZE_NEAREST_FLOOR;
        switch (fold->geometry->conversion->format.mode) {
        case PIXELS_P:
                return RESIZE_NEAREST;
        case PIXELS_I16: /* another filter was refused */
                return RESIZE_NEAREST_CENTER;
        default:
                return filter;
        }
}

int fold_resize(struct fold *fold, uint64_t width, uint64_t height, enum resize_filter filter, struct why *why) {
        struct stage *stage = current(fold);
        int r;

        if (width == stage->canvas_width && height == stage->canvas_height)
                return 0;
        r = check_sides(stage, width, height, why);
        if (r < 0)
                return r;

        /* Mirroring before resizing does not give exactly the same bits as mirroring after it. */
        if (is_resampled(stage) || is_padded(stage) || stage->flip || stage->vflip || is_warped(stage) ||
            stage->n_operations > 0) {
                r = begin_next(fold, why);
                if (r < 0)
                        return r;
                stage = current(fold);
        }

        motions_scale(fold->motions, stage->canvas_width, stage->canvas_height, width, height);
        fold_window(stage);
        stage->filter = fold_filter_of(fold, filter);
        stage->drawn_by = fold->step;
        stage->width = stage->window.width = stage->canvas_width = (uint32_t)width;
        stage->height = stage->window.height = stage->canvas_height = (uint32_t)height;
        return 0;
}

/* True if the stage only writes the output. The output is memory that a client may write too: a value that is read back
 * could have changed. */
static bool is_direct(const struct geometry *geometry, const struct stage *last) {
        return !last->vflip && !has_picture_border(last) && last->n_operations == 0 &&
               conversion_is_none(geometry->conversion);
}

struct resize_job stage_resize_job(const struct stage *stage) {
        return (struct resize_job){
                .width = stage->width,
                .height = stage->height,
                .window = stage->window,
                .filter = stage->filter,
                .flip = stage->flip,
        };
}

/* What the decoder has to deliver for a stage: the window's part of its source. If the window was cropped away
 * completely, one pixel, so that the picture is opened and read like any other. */
static struct box needed_of(const struct stage *stage) {
        struct resize_job job = stage_resize_job(stage);
        struct box box = { .width = 1, .height = 1 };

        if (stage->window.width > 0)
                resize_need(stage->source.width, stage->source.height, &job, &box);
        box.x += stage->source.x;
        box.y += stage->source.y;
        return box;
}

int fold_finish(struct fold *fold, struct why *why) {
        struct geometry *geometry = fold->geometry;
        const struct stage *first = &geometry->stages[0], *last = current(fold);
        uint32_t width = first->source.width, height = first->source.height; /* the picture's, if nothing is cropped */
        int r;

        geometry->width = fold_width(fold);
        geometry->height = fold_height(fold);
        geometry->is_direct = is_direct(geometry, last);
        if (!geometry->is_direct) {
                r = fold_check(fold, why);
                if (r < 0)
                        return r;
        }
        fold_window(current(fold));
        geometry->source = needed_of(first);
        geometry->is_copy = geometry->n_stages == 1 && geometry->is_direct && !is_resampled(first) &&
                            !is_padded(first) && !first->flip && first->source.width == width &&
                            first->source.height == height;
        return 0;
}
