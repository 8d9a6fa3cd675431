/* augment/operations/aug_mix/aug_mix_pixels.c: torchvision's AugMix of transforms.v2: chains of changes of the picture, each
 * from the picture as it was, are mixed with it.
 *
 * Pillow's pictures are tensors there before anything is done, so the changes are those of tensors (tensors.h,
 * warp_grid_mix()). The sum is one of float32, the picture first and then each chain, truncated to levels: since
 * weights are rounded, a level that is the same in all of them may become the one below.
 *
 * The operation: amount: severity; others: alpha; box: the number of chains (x) and of changes in each (y, 0: drawn),
 * the filter (width, enum warp_filter), and whether there is a fill (height), which is color; flag: all changes, not
 * only the first nine; seed: of aug_mix_draws.h. */
#include <math.h>
#include <string.h>

#include "daemon/augment/operation.h"
#include "daemon/augment/operations/aug_mix/aug_mix_draws.h"
#include "daemon/augment/operations/aug_mix/tensors.h"
#include "daemon/augment/operations/wide.h"
#include "daemon/augment/steps/policies/scale.h"
#include "daemon/augment/warp/warp_moves.h"

static const double PI = 3.141592653589793;

/* ---- one change ------------------------------------------------------------------------------------------------ */

/* A chain's picture, and one of the same size that a change may write instead. */
struct chain {
        const struct operation *operation;
        struct canvas canvas, spare;
};

static void swap_canvases(struct chain *chain) {
        struct canvas kept = chain->canvas;

        chain->canvas = chain->spare;
        chain->spare = kept;
}

static void in_place(const struct chain *chain, const struct operation_type *type, float amount) {
        struct operation operation = { .type = type, .amount = amount };

        type->run(&operation, &chain->canvas);
}

/* About a point that is counted from the picture's middle. */
static void warp_about(struct chain *chain, const struct affine *affine, double center_x, double center_y) {
        const struct operation *operation = chain->operation;
        struct warp warp = { .kind = WARP_GRID_AFFINE, .filter = (enum warp_filter)operation->box.width };
        struct view source = { chain->canvas.pixels, chain->canvas.stride, chain->canvas.width, chain->canvas.height };

        memcpy(warp.fill, operation->color, PIXEL_BYTES);
        affine_inverse(affine, center_x, center_y, warp.coefficients);
        if (warp.filter == WARP_BILINEAR)
                warp_grid_mix(&warp, operation->box.height > 0, &source, &chain->spare);
        else
                warp_run(&warp, &source, &chain->spare, NULL);
        swap_canvases(chain);
}

/* About the top left corner. */
static void aug_mix_pixels_shear(struct chain *chain, double x, double y) {
        struct affine affine = { .scale = 1 };

        affine.shear_x = atan(x) * (180.0 / PI); /* as Python's math.degrees() */
        affine.shear_y = atan(y) * (180.0 / PI);
        warp_about(chain, &affine, 0.0 - chain->canvas.width * 0.5, 0.0 - chain->canvas.height * 0.5);
}

static void aug_mix_pixels_translate(struct chain *chain, double x, double y) {
        struct affine affine = { .scale = 1, .translate_x = trunc(x), .translate_y = trunc(y) };

        warp_about(chain, &affine, 0, 0);
}

/* Anticlockwise, by less than a quarter. */
static void rotate(struct chain *chain, double angle) {
        struct affine affine = { .scale = 1, .angle = -(angle < 0 ? angle + 360.0 : angle) };

        if (angle != 0)
                warp_about(chain, &affine, 0, 0);
}

static void sharpen(struct chain *chain, double factor) {
        tensor_sharpness(&chain->canvas, factor, &chain->spare);
        swap_canvases(chain);
}

static void aug_mix_pixels_change(struct chain *chain, const struct aug_mix_draw *draw) {
        struct policy_magnitude magnitude = { draw->magnitude, AUG_MIX_BINS };
        double sign = draw->is_negative ? -1 : 1, width = chain->canvas.width, height = chain->canvas.height;
        double factor = 1.0 + sign * policy_on_scale(0, 0.9, magnitude);
        bool is_grey = chain->operation->is_grey;

        switch (draw->change) {
        case AUG_MIX_SHEAR_X:
                aug_mix_pixels_shear(chain, sign * policy_on_scale(0, 0.3, magnitude), 0);
                return;
        case AUG_MIX_SHEAR_Y:
                aug_mix_pixels_shear(chain, 0, sign * policy_on_scale(0, 0.3, magnitude));
                return;
        case AUG_MIX_TRANSLATE_X:
                aug_mix_pixels_translate(chain, sign * policy_on_scale(0, width / 3.0, magnitude), 0);
                return;
        case AUG_MIX_TRANSLATE_Y:
                aug_mix_pixels_translate(chain, 0, sign * policy_on_scale(0, height / 3.0, magnitude));
                return;
        case AUG_MIX_ROTATE:
                rotate(chain, sign * policy_on_scale(0, 30, magnitude));
                return;
        case AUG_MIX_POSTERIZE:
                in_place(chain, &operation_posterize, rintf(4.0f - (float)magnitude.idx / 2.25f));
                return;
        case AUG_MIX_SOLARIZE: /* levels from the threshold on, which is compared in float32 */
                in_place(chain, &operation_solarize, ceilf((float)(255.0 * policy_on_scale(1, 0, magnitude))));
                return;
        case AUG_MIX_AUTO_CONTRAST:
                tensor_autocontrast(&chain->canvas);
                return;
        case AUG_MIX_EQUALIZE:
                in_place(chain, &operation_equalize, 0);
                return;
        case AUG_MIX_BRIGHTNESS:
                in_place(chain, &operation_brightness, (float)factor);
                return;
        case AUG_MIX_COLOR:
                if (!is_grey)
                        tensor_saturation(&chain->canvas, factor);
                return;
        case AUG_MIX_CONTRAST:
                tensor_contrast(&chain->canvas, factor, is_grey);
                return;
        default:
                sharpen(chain, factor);
        }
}

/* ---- chains ---------------------------------------------------------------------------------------------------- */

static void run_chain(struct chain *chain, uint32_t number, const struct canvas *original) {
        const struct operation *operation = chain->operation;
        struct dlp_philox philox;
        uint32_t depth = aug_mix_begin_chain(operation->seed, number, operation->box.y, &philox);

        for (uint32_t y = 0; y < original->height; y++)
                memcpy(canvas_at(&chain->canvas, 0, y), canvas_at(original, 0, y),
                       (size_t)original->width * PIXEL_BYTES);
        for (uint32_t i = 0; i < depth; i++) {
                struct aug_mix_draw draw = aug_mix_draw_change(&philox, operation->flag, (uint32_t)operation->amount);

                aug_mix_pixels_change(chain, &draw);
        }
}

static uint64_t aug_mix_pixels_bytes_of(uint32_t width, uint32_t height) {
        return (uint64_t)width * height * PIXEL_BYTES;
}

/* The pictures of the chains, and the spare one. */
static uint64_t extra_bytes(const struct operation *operation, uint32_t width, uint32_t height) {
        return (operation->box.x + 1) * aug_mix_pixels_bytes_of(width, height);
}

static struct canvas extra_canvas(const struct operation *operation, uint32_t number, const struct canvas *canvas) {
        return (struct canvas){
                .pixels = operation->rows + number * aug_mix_pixels_bytes_of(canvas->width, canvas->height),
                .stride = (size_t)canvas->width * PIXEL_BYTES,
                .width = canvas->width,
                .height = canvas->height,
                .wanting = canvas->wanting,
        };
}

/* ---- the mixture ------------------------------------------------------------------------------------------------- */

#define AT_ONCE 1024u /* levels: their sums stay in the first cache */

static ALWAYS_INLINE void weigh_loop(const uint8_t *restrict levels, uint32_t n, float weight, float *restrict sums) {
        for (uint32_t i = 0; i < n; i++)
                sums[i] = weight * (float)levels[i];
}

WIDE(weigh, (const uint8_t *levels, uint32_t n, float weight, float *sums), (levels, n, weight, sums))

static ALWAYS_INLINE void add_weighed_loop(const uint8_t *restrict levels, uint32_t n, float weight,
                                           float *restrict sums) {
        for (uint32_t i = 0; i < n; i++)
                sums[i] += weight * (float)levels[i];
}

WIDE(add_weighed, (const uint8_t *levels, uint32_t n, float weight, float *sums), (levels, n, weight, sums))

static ALWAYS_INLINE void truncate_sums_loop(const float *restrict sums, uint32_t n, uint8_t *restrict levels) {
        for (uint32_t i = 0; i < n; i++)
                levels[i] = (uint8_t)(int)sums[i];
}

WIDE(truncate_sums, (const float *sums, uint32_t n, uint8_t *levels), (sums, n, levels))

static void aug_mix_pixels_mix_row(const struct aug_mix_weights *weights, const struct canvas *chains,
                                   uint32_t n_chains, uint32_t y, const struct canvas *canvas) {
        uint32_t n_levels = canvas->width * PIXEL_BYTES;
        float sums[AT_ONCE];

        for (uint32_t at = 0; at < n_levels; at += AT_ONCE) {
                uint32_t n = n_levels - at < AT_ONCE ? n_levels - at : AT_ONCE;
                uint8_t *levels = canvas_at(canvas, 0, y) + at;

                weigh(levels, n, weights->original, sums);
                for (uint32_t i = 0; i < n_chains; i++)
                        add_weighed(canvas_at(&chains[i], 0, y) + at, n, weights->chains[i], sums);
                truncate_sums(sums, n, levels);
        }
}

static void run(const struct operation *operation, const struct canvas *canvas) {
        struct canvas chains[AUG_MIX_WIDTH_MAX];
        uint32_t n_chains = operation->box.x;
        struct aug_mix_weights weights;
        struct chain chain = { .operation = operation, .spare = extra_canvas(operation, n_chains, canvas) };

        for (uint32_t i = 0; i < n_chains; i++) {
                chain.canvas = extra_canvas(operation, i, canvas);
                run_chain(&chain, i, canvas);
                if (canvas->wanting && !wanting_lasts(canvas->wanting))
                        return;
                chains[i] = chain.canvas;
        }
        aug_mix_draw_weights(operation->seed, operation->others[0], n_chains, &weights);
        for (uint32_t y = 0; y < canvas->height && canvas_goes_on(canvas, y); y++)
                aug_mix_pixels_mix_row(&weights, chains, n_chains, y, canvas);
}

const struct operation_type operation_aug_mix = {
        .moves_with_flip = false, /* changes have directions */
        .moves_with_crop = false,
        .extra_bytes = extra_bytes,
        .run = run,
};
