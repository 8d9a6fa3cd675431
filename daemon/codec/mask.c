/* Masks: pictures whose pixels are numbers of classes, in a part with the picture that they belong to. They move as it
 * does, and their numbers are never mixed: resizing takes the pixel that torch's "nearest" takes. Delivered as height x
 * width, of the dtype that the part says: files of one dataset may differ in it, and a batch has one. Arrays are masks,
 * too (masks/array_mask.h). */

#include <errno.h>
#include <string.h>

#include "daemon/codec/codec_type.h"
#include "daemon/codec/convert.h"
#include "daemon/codec/masks/array_mask.h"
#include "daemon/codec/render.h"

static enum dlp_dtype mask_dtype_of(const struct codec *codec) {
        enum dlp_dtype dtype = DLP_DTYPE_UINT8;

        recipe_mask_dtype(codec->recipe, &dtype);
        return dtype;
}

static int mask_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                     struct why *why) {
        uint64_t n_number = dlp_dtype_bytes(mask_dtype_of(codec));
        uint32_t height = 0, width = 0;
        bool varies = recipe_output(codec->recipe, &height, &width) == RECIPE_VARIES;
        uint32_t most_height = 0, most_width = 0;

        (void)why;
        ret_form->dtype = mask_dtype_of(codec);
        ret_form->how = COLLATE_STACK;
        ret_form->n_dims = 2;
        ret_form->shape[0] = varies ? -1 : (int64_t)height;
        ret_form->shape[1] = varies ? -1 : (int64_t)width;
        ret_form->unit_bytes = n_number;
        ret_form->max_bytes = terms->max_pixels * n_number;
        ret_form->asked_bytes = recipe_max_pixels(codec->recipe) * n_number;
        ret_form->n_padded_dims = 2;
        if (recipe_bound(codec->recipe, &most_height, &most_width)) {
                ret_form->bounds[0] = most_height;
                ret_form->bounds[1] = most_width;
        }
        return 0;
}

/* Numbers of 8 bits fit every dtype, those of 16 bits every other one. */
static int open_numbers(const struct codec *codec, struct codec_tools *tools, struct why *why) {
        int r = decoder_as(tools->decoder, DECODE_NUMBERS, why);

        tools->is_wide = false;
        if (r != -ENOTSUP || decoder_as(tools->decoder, DECODE_WIDE, NULL) < 0)
                return r;
        if (mask_dtype_of(codec) == DLP_DTYPE_UINT8)
                return why_set(why, -ENOTSUP,
                               "is a mask of 16 bits, and masks are delivered as uint8: begin the steps with "
                               "decode(mask=uint16), or with int32 or int64 in its place");
        tools->is_wide = true;
        return 0;
}

static bool mask_is_array(const struct codec *codec) {
        return codec->field.kind == FIELD_VALUE;
}

/* The draws depend on the size, so it must be the picture's. */
static int mask_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                     struct codec_opened *ret_opened, struct why *why) {
        struct geometry *geometry = &tools->geometry;
        uint64_t n_pixels;
        int r;

        if (mask_is_array(codec))
                return array_mask_open(codec, tools, input, ret_opened, why);
        r = decoder_open(tools->decoder, input->bytes, input->n_bytes, &tools->info, why);
        if (r == 0 && (tools->info.width != input->lead_width || tools->info.height != input->lead_height))
                return why_set(why, -EBADMSG, "is a mask of %u x %u pixels for a picture of %u x %u", tools->info.width,
                               tools->info.height, input->lead_width, input->lead_height);
        if (r == 0)
                r = open_numbers(codec, tools, why);
        if (r == 0)
                r = codec_load_plan_boxes(codec, tools, input, geometry, why);
        if (r == 0)
                r = recipe_plan_mask(codec->recipe, tools->info.width, tools->info.height, tools->is_wide,
                                     codec_seed(codec, input), input->epoch, input->sample, geometry, why);
        if (r < 0)
                return r;
        n_pixels = (uint64_t)geometry->height * geometry->width;
        ret_opened->width = tools->info.width;
        ret_opened->height = tools->info.height;
        ret_opened->shape[0] = geometry->height;
        ret_opened->shape[1] = geometry->width;
        ret_opened->n_bytes = n_pixels * dlp_dtype_bytes(mask_dtype_of(codec));
        ret_opened->need_bytes = decoder_need(tools->decoder, &geometry->source) + recipe_bytes_needed(geometry) +
                                 n_pixels * PIXEL_BYTES;
        return 0;
}

/* Three times the same number becomes the number. */
static int render_narrow(const struct codec *codec, struct codec_tools *tools, uint8_t *out, struct why *why) {
        size_t n = (size_t)tools->geometry.height * tools->geometry.width;
        bool is_byte = mask_dtype_of(codec) == DLP_DTYPE_UINT8;
        uint8_t *pixels = tools->rows.bytes, *numbers = is_byte ? out : pixels;
        int r = render(tools->decoder, tools->workspace, &tools->geometry, pixels,
                       (size_t)tools->geometry.width * PIXEL_BYTES, why);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                numbers[i] = pixels[i * PIXEL_BYTES];
        return is_byte ? 0 : convert(DLP_DTYPE_UINT8, numbers, mask_dtype_of(codec), out, n, why);
}

static int render_wide(const struct codec *codec, struct codec_tools *tools, uint8_t *out, struct why *why) {
        size_t n = (size_t)tools->geometry.height * tools->geometry.width;
        int r = render(tools->decoder, tools->workspace, &tools->geometry, tools->rows.bytes,
                       tools->geometry.width * sizeof(uint16_t), why);

        return r < 0 ? r : convert(DLP_DTYPE_UINT16, tools->rows.bytes, mask_dtype_of(codec), out, n, why);
}

/* Rows that follow one another: to where they are in a mask that is padded, the last one first. */
static void spread_rows(uint8_t *rows, size_t n_rows, size_t n_bytes, size_t stride) {
        for (size_t y = n_rows; y-- > 1;)
                memmove(rows + y * stride, rows + y * n_bytes, n_bytes);
}

static int render_numbers(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                          uint8_t *out, struct why *why) {
        size_t n = (size_t)tools->geometry.height * tools->geometry.width;
        int r;

        if (mask_is_array(codec))
                return array_mask_render(codec, tools, input, out, why);
        r = codec_memory_reserve(&tools->rows, n * PIXEL_BYTES, why);
        if (r < 0)
                return r;
        return tools->is_wide ? render_wide(codec, tools, out, why) : render_narrow(codec, tools, out, why);
}

static int mask_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                       uint8_t *out, struct why *why) {
        int r = render_numbers(codec, tools, input, out, why);

        if (r == 0 && input->row_stride > 0)
                spread_rows(out, tools->geometry.height, tools->geometry.width * dlp_dtype_bytes(mask_dtype_of(codec)),
                            input->row_stride);
        return r;
}

static void mask_close(struct codec_tools *tools) {
        decoder_close(tools->decoder);
}

static int mask_refuse_room(const struct codec *codec, const struct codec_opened *opened, uint64_t room_bytes,
                            struct why *why) {
        uint64_t n_number = dlp_dtype_bytes(mask_dtype_of(codec)), n_room = room_bytes / n_number;

        return why_set(
                why, -EFBIG,
                "is %lld x %lld pixels after the pipeline; this job's slots have room for %llu pixel%s a mask: begin "
                "the pipeline with decode(max_pixels=%llu), or ask for a smaller batch or fewer slots",
                (long long)opened->shape[1], (long long)opened->shape[0], (unsigned long long)n_room,
                n_room == 1 ? "" : "s", (unsigned long long)(opened->n_bytes / n_number));
}

static int mask_refuse_memory(const struct codec_tools *tools, const struct codec_opened *opened,
                              uint64_t allowed_bytes, struct why *why) {
        return CODEC_PICTURE.refuse_memory(tools, opened, allowed_bytes, why);
}

static int mask_refuse_shape(const struct codec_opened *opened, const int64_t *other, struct why *why) {
        return why_set(why, -EMEDIUMTYPE,
                       "has the shape %lld x %lld after the pipeline, another sample of its batch has %lld x %lld: "
                       "masks of different shapes cannot be stacked; add a step that gives one size, such as "
                       "center_crop(224) or resize([256, 256]), or use batch_size 1",
                       (long long)opened->shape[0], (long long)opened->shape[1], (long long)other[0],
                       (long long)other[1]);
}

const struct codec_type CODEC_MASK = {
        .name = "mask",
        .interprets = INTERPRETS_ALL,
        .opening = STAGE_HEADER,
        .rendering = STAGE_DECODE,
        .form = mask_form,
        .open = mask_open,
        .render = mask_render,
        .close = mask_close,
        .refuse_room = mask_refuse_room,
        .refuse_memory = mask_refuse_memory,
        .refuse_shape = mask_refuse_shape,
};
