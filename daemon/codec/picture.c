/* Pictures: decoded, and augmented as the steps say. */

#include <errno.h>

#include "daemon/codec/codec_type.h"
#include "daemon/codec/layered.h"
#include "daemon/codec/pictures/shared.h"
#include "daemon/codec/render.h"
#include "daemon/codec/turned.h"
#include "daemon/decode/exif.h"
#include "proto/base/shown/amounts.h"

static int picture_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                        struct why *why) {
        const struct pixel_format *format = recipe_format(codec->recipe);
        size_t pixel_bytes = pixel_format_bytes(format);
        uint32_t height = 0, width = 0;
        bool varies = recipe_output(codec->recipe, &height, &width) == RECIPE_VARIES;
        uint32_t most_height = 0, most_width = 0;
        int64_t rows = varies ? -1 : (int64_t)height, columns = varies ? -1 : (int64_t)width;

        (void)why;
        ret_form->dtype = format->dtype;
        ret_form->how = COLLATE_STACK;
        ret_form->n_dims = 3;
        ret_form->shape[0] = format->channels_first ? format->n_channels : rows;
        ret_form->shape[1] = format->channels_first ? rows : columns;
        ret_form->shape[2] = format->channels_first ? columns : format->n_channels;
        ret_form->tail_bytes = recipe_left_bytes(codec->recipe);
        ret_form->unit_bytes = pixel_bytes;
        ret_form->max_bytes = terms->max_pixels * pixel_bytes;
        ret_form->asked_bytes = recipe_max_pixels(codec->recipe) * pixel_bytes;
        ret_form->padded_dim = format->channels_first;
        ret_form->n_padded_dims = 2;
        if (recipe_bound(codec->recipe, &most_height, &most_width)) {
                ret_form->bounds[0] = most_height;
                ret_form->bounds[1] = most_width;
        }
        return 0;
}

/* What the decoder makes of the picture, for the mode of the pipeline. */
static int picture_open_as(const struct codec *codec, struct codec_tools *tools, struct why *why) {
        switch (recipe_format(codec->recipe)->mode) {
        case PIXELS_L:
                return decoder_as(tools->decoder, DECODE_GREY, why);
        case PIXELS_P:
                return decoder_as(tools->decoder, DECODE_NUMBERS, why);
        case PIXELS_I16:
                return decoder_as(tools->decoder, DECODE_WIDE, why);
        case PIXELS_RGBA:
        case PIXELS_LA:
                return layered_open(tools, why);
        default:
                return 0;
        }
}

static int open_decoder(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        struct why *why) {
        int r = decoder_open(tools->decoder, input->bytes, input->n_bytes, &tools->info, why);

        return r < 0 ? r : picture_open_as(codec, tools, why);
}

/* What rendering takes if it is not cut from a picture that is decoded already. */
static uint64_t need_alone(const struct codec *codec, const struct codec_tools *tools, const struct box *source) {
        uint64_t need = decoder_need(tools->decoder, source) + recipe_bytes_needed(&tools->geometry);

        if (pixel_format_has_alpha(recipe_format(codec->recipe)))
                return need + layered_need(tools, source);
        return need + (tools->orientation == EXIF_UPRIGHT ? 0 : turned_need(&tools->geometry));
}

int picture_plan(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                 struct codec_opened *opened, struct why *why) {
        const struct pixel_format *format = recipe_format(codec->recipe);
        struct geometry *geometry = &tools->geometry;
        bool first = format->channels_first;
        int r = codec_load_plan_boxes(codec, tools, input, geometry, why);

        if (r == 0)
                r = recipe_plan(codec->recipe, opened->width, opened->height, codec_seed(codec, input), input->epoch,
                                input->sample, geometry, why);
        if (r < 0)
                return r;
        if (tools->max_step_pixels > 0 && recipe_work_of(geometry) > tools->max_step_pixels)
                return why_set(
                        why, -EFBIG,
                        "is %u x %u pixels, and the steps of the pipeline make %llu of it, max_step_pixels allows "
                        "%llu: make pictures smaller or use fewer steps, or have it raised",
                        opened->width, opened->height, (unsigned long long)recipe_work_of(geometry),
                        (unsigned long long)tools->max_step_pixels);
        opened->shape[0] = first ? format->n_channels : geometry->height;
        opened->shape[1] = first ? geometry->height : geometry->width;
        opened->shape[2] = first ? geometry->width : format->n_channels;
        opened->n_bytes = (uint64_t)geometry->height * geometry->width * pixel_format_bytes(format) +
                          recipe_left_bytes(codec->recipe);
        return 0;
}

static int picture_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        struct codec_opened *ret_opened, struct why *why) {
        struct geometry *geometry = &tools->geometry;
        struct box source;
        int r = shared_is_ready(tools) ? 0 : open_decoder(codec, tools, input, why);

        if (r < 0)
                return r;
        tools->orientation = recipe_is_upright(codec->recipe) ? exif_orientation(input->bytes, input->n_bytes)
                                                              : EXIF_UPRIGHT;
        ret_opened->width = tools->info.width;
        ret_opened->height = tools->info.height;
        turned_size(tools->orientation, &ret_opened->width, &ret_opened->height);
        r = picture_plan(codec, tools, input, ret_opened, why);
        if (r < 0)
                return r;
        source = turned_source(tools->orientation, tools->info.width, tools->info.height, &geometry->source);
        if (!shared_is_ready(tools))
                ret_opened->need_bytes = need_alone(codec, tools, &source);
        shared_plan(codec, tools, input, &source, ret_opened);
        return 0;
}

static void picture_count_decoded(struct codec_tools *tools) {
        tools->counts.n_decoded[decoder_decoded_by(tools->decoder)]++;
        if (decoder_handed_over(tools->decoder))
                tools->counts.n_handed_over++;
}

static int render_alone(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        const struct box *source, uint8_t *out, size_t stride, struct why *why) {
        int r;

        if (pixel_format_has_alpha(recipe_format(codec->recipe)))
                r = layered_render(codec, tools, input, source, out, stride, why);
        else if (tools->orientation == EXIF_UPRIGHT)
                r = render(tools->decoder, tools->workspace, &tools->geometry, out, stride, why);
        else
                r = turned_render(tools, tools->orientation, out, stride, why);
        if (r == 0)
                picture_count_decoded(tools);
        return r;
}

static int render_pixels(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                         uint8_t *out, size_t stride, struct why *why) {
        struct box source = turned_source(tools->orientation, tools->info.width, tools->info.height,
                                          &tools->geometry.source);
        bool was_ready = shared_is_ready(tools), is_closed;
        int r = shared_decode(tools, &is_closed);

        if (r == SHARED_ALONE) {
                r = is_closed ? open_decoder(codec, tools, input, why) : 0;
                return r < 0 ? r : render_alone(codec, tools, input, &source, out, stride, why);
        }
        if (was_ready)
                tools->counts.n_shared++;
        else
                picture_count_decoded(tools);
        return shared_cut(tools, &source, out, stride, why);
}

static int picture_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                          uint8_t *out, struct why *why) {
        size_t stride = pixel_format_row_bytes(recipe_format(codec->recipe), tools->geometry.width);
        int r;

        if (input->row_stride > 0)
                stride = input->row_stride;
        tools->geometry.plane_stride = input->plane_stride;
        r = render_pixels(codec, tools, input, out, stride, why);
        if (r == 0 && recipe_left_bytes(codec->recipe) > 0) /* which is after rows without gaps */
                recipe_write_left(codec->recipe, &tools->geometry, out + stride * tools->geometry.height);
        return r;
}

static void picture_close(struct codec_tools *tools) {
        shared_close(tools);
        decoder_close(tools->decoder);
}

/* Only the terms of the job and memory_limit decide, never other jobs or the time when this sample comes. */
static int picture_refuse_room(const struct codec *codec, const struct codec_opened *opened, uint64_t room_bytes,
                               struct why *why) {
        size_t pixel_bytes = pixel_format_bytes(recipe_format(codec->recipe));
        bool first = recipe_format(codec->recipe)->channels_first;
        uint64_t n_room = room_bytes / pixel_bytes;

        return why_set(
                why, -EFBIG,
                "is %lld x %lld pixels after the pipeline; this job's slots have room for %llu pixel%s a picture: "
                "begin the pipeline with decode(max_pixels=%llu), or ask for a smaller batch or fewer slots",
                (long long)opened->shape[first ? 2 : 1], (long long)opened->shape[first ? 1 : 0],
                (unsigned long long)n_room, n_room == 1 ? "" : "s",
                (unsigned long long)(opened->n_bytes / pixel_bytes));
}

static int picture_refuse_memory(const struct codec_tools *tools, const struct codec_opened *opened,
                                 uint64_t allowed_bytes, struct why *why) {
        char need[AMOUNT_TEXT_MAX], allowed[AMOUNT_TEXT_MAX];

        format_compared(need, opened->need_bytes, allowed, allowed_bytes);
        return why_set(why, -EFBIG,
                       "is %u x %u pixels: decoding and augmenting what is needed of it may take %s, %s are allowed "
                       "(a quarter of memory_limit, 1 GiB at most): raise memory_limit, or crop or resize earlier in "
                       "the pipeline",
                       tools->info.width, tools->info.height, need, allowed);
}

static int picture_refuse_shape(const struct codec_opened *opened, const int64_t *other, struct why *why) {
        return why_set(why, -EMEDIUMTYPE,
                       "has the shape %lld x %lld x %lld after the pipeline, another sample of its batch has "
                       "%lld x %lld x %lld: pictures of different shapes cannot be stacked; add a step that gives one "
                       "size, such as center_crop(224) or resize([256, 256]), or pad, or use batch_size 1",
                       (long long)opened->shape[0], (long long)opened->shape[1], (long long)opened->shape[2],
                       (long long)other[0], (long long)other[1], (long long)other[2]);
}

const struct codec_type CODEC_PICTURE = {
        .name = "picture",
        .interprets = INTERPRETS_ALL,
        .opening = STAGE_HEADER,
        .rendering = STAGE_DECODE,
        .form = picture_form,
        .open = picture_open,
        .render = picture_render,
        .close = picture_close,
        .refuse_room = picture_refuse_room,
        .refuse_memory = picture_refuse_memory,
        .refuse_shape = picture_refuse_shape,
};
