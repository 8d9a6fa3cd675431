#include "daemon/codec/steps/steps_after.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/codec/codec_type.h"
#include "proto/order/philox.h"

/* The stream of draws of these steps, far from those of views, parts and functions. */
#define AFTER_DRAWS (3ull << 62)

#define BAND_PIXELS RECIPE_SIZE_MAX /* of a row */

struct steps_after {
        struct recipe *recipe;
        uint32_t n_channels; /* 1 or 3 */
};

int steps_after_new(const struct codec_steps *steps, uint32_t n_channels, uint32_t view, struct steps_after **ret_after,
                    struct why *why) {
        const enum pixel_mode mode = n_channels == 1 ? PIXELS_L : PIXELS_RGB;
        struct steps_after *after = calloc(1, sizeof(*after));
        int r;

        if (!after)
                return why_errno(why, -ENOMEM, "pipeline");
        after->n_channels = n_channels;
        r = recipe_read(steps->grammar, steps->list, &mode, &after->recipe, why);
        if (r == 0 && recipe_drops_boxes(after->recipe))
                r = why_set(why, -EINVAL,
                            "pipeline: sanitize drops boxes, which a function has got already: write it before the "
                            "function");
        if (r == 0 && recipe_needs_boxes(after->recipe))
                r = why_set(why, -EINVAL,
                            "pipeline: random_iou_crop looks at boxes, which a function has got already: write it "
                            "before the function");
        if (r < 0) {
                steps_after_free(after);
                return r;
        }
        recipe_set_view(after->recipe, view);
        *ret_after = after;
        return 0;
}

void steps_after_free(struct steps_after *after) {
        if (!after)
                return;
        recipe_free(after->recipe);
        free(after);
}

const char *steps_after_text(const struct steps_after *after) {
        return recipe_text(after->recipe);
}

bool steps_after_keeps_places(const struct steps_after *after) {
        return recipe_keeps_places(after->recipe);
}

int steps_after_form(const struct steps_after *after, struct field_form *form, struct why *why) {
        const struct pixel_format *format = recipe_format(after->recipe);
        uint32_t height, width;

        if (form->result.n_bytes > 0)
                return why_set(why, -EINVAL,
                               "pipeline: field %s: what the function delivers varies in size, and steps after a "
                               "function are for pictures of one size: let the function do what these steps do",
                               form->name);
        if (form->how != COLLATE_STACK || form->dtype != DLP_DTYPE_UINT8 || form->n_dims != 3 ||
            form->shape[2] != after->n_channels || form->shape[0] < 1 || form->shape[1] < 1 ||
            form->shape[0] > RECIPE_SIZE_MAX || form->shape[1] > RECIPE_SIZE_MAX)
                return why_set(why, -EINVAL,
                               "pipeline: field %s: steps after a function are for pictures, uint8 height x width x %u "
                               "with up to %u pixels on a side: let the function deliver that, or let it do what these "
                               "steps do",
                               form->name, after->n_channels, RECIPE_SIZE_MAX);
        if (recipe_output_from(after->recipe, (uint32_t)form->shape[0], (uint32_t)form->shape[1], &height, &width) != 0)
                return why_set(why, -EINVAL,
                               "pipeline: field %s: the steps after the function make pictures of several sizes: add "
                               "one that gives them one size, such as center_crop(224)",
                               form->name);
        form->result = (struct field_input){ .n_bytes = field_form_bytes(form, form->shape),
                                             .dtype = DLP_DTYPE_UINT8,
                                             .n_dims = 3,
                                             .shape = { form->shape[0], form->shape[1], form->shape[2] } };
        form->dtype = format->dtype;
        form->shape[0] = format->channels_first ? format->n_channels : height;
        form->shape[1] = format->channels_first ? height : width;
        form->shape[2] = format->channels_first ? width : format->n_channels;
        form->padded_dim = format->channels_first;
        form->n_padded_dims = 2;
        form->unit_bytes = pixel_format_bytes(format);
        return 0;
}

int steps_after_open(const struct steps_after *after, const struct codec *codec, struct codec_tools *tools,
                     const struct codec_input *input, const struct field_form *form, uint64_t *ret_need_bytes,
                     struct why *why) {
        uint64_t seed = dlp_philox_seed(codec_seed(codec, input), AFTER_DRAWS);
        int r = recipe_plan(after->recipe, (uint32_t)form->result.shape[1], (uint32_t)form->result.shape[0], seed,
                            input->epoch, input->sample, &tools->geometry, why);

        if (r == 0)
                *ret_need_bytes = recipe_bytes_needed(&tools->geometry);
        return r;
}

/* Between steps a grey pixel has three channels, too. */
static void feed_grey(struct workspace *workspace, const uint8_t *pixels, size_t stride, const struct box *source) {
        uint8_t band[BAND_PIXELS * PIXEL_BYTES];
        struct view view = { .pixels = band, .width = source->width, .height = 1 };

        view.stride = (size_t)source->width * PIXEL_BYTES;
        for (uint32_t y = 0; y < source->height; y++) {
                const uint8_t *row = pixels + (source->y + y) * stride + source->x;

                for (uint32_t x = 0; x < source->width; x++)
                        band[3 * x] = band[3 * x + 1] = band[3 * x + 2] = row[x];
                recipe_feed(workspace, &view);
        }
}

int steps_after_render(const struct steps_after *after, struct codec_tools *tools, const struct field_form *form,
                       const uint8_t *pixels, uint8_t *out, struct why *why) {
        struct geometry *geometry = &tools->geometry;
        const struct box *source = &geometry->source;
        size_t stride = (size_t)form->result.shape[1] * after->n_channels;
        int r;

        geometry->plane_stride = 0;
        r = recipe_begin(tools->workspace, geometry, out,
                         pixel_format_row_bytes(recipe_format(after->recipe), geometry->width), why);
        if (r < 0)
                return r;
        if (after->n_channels == 1) {
                feed_grey(tools->workspace, pixels, stride, source);
        } else if (source->height > 0) {
                struct view view = { .pixels = pixels + source->y * stride + (size_t)source->x * PIXEL_BYTES,
                                     .stride = stride,
                                     .width = source->width,
                                     .height = source->height };

                recipe_feed(tools->workspace, &view);
        }
        return recipe_end(tools->workspace, why);
}
