/* Masks: pictures whose pixels are numbers of classes, in a part with the picture that they belong to. They move as it
 * does, and their numbers are never mixed: resizing takes the pixel that torch's "nearest" takes. Delivered as height x
 * width. */

#include <errno.h>

#include "daemon/codec/codec_type.h"
#include "daemon/codec/render.h"

static int mask_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                     struct why *why) {
        uint32_t height = 0, width = 0;
        bool varies = recipe_output(codec->recipe, &height, &width) == RECIPE_VARIES;

        (void)why;
        ret_form->dtype = DLP_DTYPE_UINT8;
        ret_form->how = COLLATE_STACK;
        ret_form->n_dims = 2;
        ret_form->shape[0] = varies ? -1 : (int64_t)height;
        ret_form->shape[1] = varies ? -1 : (int64_t)width;
        ret_form->unit_bytes = 1;
        ret_form->max_bytes = terms->max_pixels;
        ret_form->asked_bytes = recipe_max_pixels(codec->recipe);
        return 0;
}

/* The draws depend on the size, so it must be the picture's. */
static int mask_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                     struct codec_opened *ret_opened, struct why *why) {
        struct geometry *geometry = &tools->geometry;
        int r = decoder_open(tools->decoder, input->bytes, input->n_bytes, &tools->info, why);

        if (r == 0 && (tools->info.width != input->lead_width || tools->info.height != input->lead_height))
                return why_set(why, -EBADMSG, "is a mask of %u x %u pixels for a picture of %u x %u", tools->info.width,
                               tools->info.height, input->lead_width, input->lead_height);
        if (r == 0)
                r = decoder_as(tools->decoder, DECODE_NUMBERS, why);
        if (r == 0)
                r = recipe_plan_mask(codec->recipe, tools->info.width, tools->info.height, codec_seed(codec, input),
                                     input->epoch, input->sample, geometry, why);
        if (r < 0)
                return r;
        ret_opened->width = tools->info.width;
        ret_opened->height = tools->info.height;
        ret_opened->shape[0] = geometry->height;
        ret_opened->shape[1] = geometry->width;
        ret_opened->n_bytes = (uint64_t)geometry->height * geometry->width;
        ret_opened->need_bytes = decoder_need(tools->decoder, &geometry->source) + recipe_bytes_needed(geometry) +
                                 ret_opened->n_bytes * PIXEL_BYTES;
        return 0;
}

static int mask_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                       uint8_t *out, struct why *why) {
        size_t n = (size_t)tools->geometry.height * tools->geometry.width;
        int r = codec_memory_reserve(&tools->rows, n * PIXEL_BYTES, why);

        (void)codec;
        (void)input;
        if (r == 0)
                r = render(tools->decoder, tools->workspace, &tools->geometry, tools->rows.bytes,
                           (size_t)tools->geometry.width * PIXEL_BYTES, why);
        for (size_t i = 0; i < n && r == 0; i++)
                out[i] = tools->rows.bytes[i * PIXEL_BYTES];
        return r;
}

static void mask_close(struct codec_tools *tools) {
        decoder_close(tools->decoder);
}

static int mask_refuse_room(const struct codec *codec, const struct codec_opened *opened,
                            const struct field_layout *field, struct why *why) {
        (void)codec;
        return why_set(
                why, -EFBIG,
                "is %lld x %lld pixels after the pipeline; this job's slots have room for %llu pixels a mask: begin "
                "the pipeline with decode(max_pixels=%llu), or ask for a smaller batch or fewer slots",
                (long long)opened->shape[1], (long long)opened->shape[0], (unsigned long long)field->sample_bytes,
                (unsigned long long)opened->n_bytes);
}

static int mask_refuse_memory(const struct codec_tools *tools, const struct codec_opened *opened,
                              uint64_t allowed_bytes, struct why *why) {
        return CODEC_PICTURE.refuse_memory(tools, opened, allowed_bytes, why);
}

static int mask_refuse_shape(const struct codec_opened *opened, const int64_t *other, struct why *why) {
        return why_set(why, -EMEDIUMTYPE,
                       "has the shape %lld x %lld after the pipeline, another sample of its batch has %lld x %lld; use "
                       "batch_size 1, or a pipeline that gives one size",
                       (long long)opened->shape[0], (long long)opened->shape[1], (long long)other[0],
                       (long long)other[1]);
}

const struct codec_type CODEC_MASK = {
        .name = "mask",
        .form = mask_form,
        .open = mask_open,
        .render = mask_render,
        .close = mask_close,
        .refuse_room = mask_refuse_room,
        .refuse_memory = mask_refuse_memory,
        .refuse_shape = mask_refuse_shape,
};
