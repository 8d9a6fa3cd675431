/* The numbers of a picture as they are stored, height x width x bands: decode(mode=F), decode(mode=I;16, bands=4). What
 * they mean is the trainer's business; nothing is done to them but a conversion to float32. */

#include <errno.h>
#include <string.h>

#include "daemon/codec/codec_type.h"
#include "daemon/codec/convert.h"

static int bands_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                      struct why *why) {
        return CODEC_PICTURE.form(codec, terms, ret_form, why);
}

/* Which mode delivers numbers of this type. */
static const char *mode_for(enum dlp_dtype dtype) {
        return PIXEL_MODE_NAMES[dtype == DLP_DTYPE_UINT8    ? PIXELS_L
                                : dtype == DLP_DTYPE_UINT16 ? PIXELS_I16
                                                            : PIXELS_F];
}

static int picture_bands_check(const struct pixel_format *format, const struct band_info *info, struct why *why) {
        bool is_taken = info->dtype == format->dtype || format->mode == PIXELS_F;

        if (info->n_bands != format->n_channels)
                return why_set(why, -EBADMSG,
                               "has %u band%s of %s, %u %s expected; decode(mode=%s, bands=%u) would deliver them",
                               info->n_bands, info->n_bands == 1 ? "" : "s", dlp_dtype_name(info->dtype),
                               format->n_channels, format->n_channels == 1 ? "is" : "are",
                               is_taken ? PIXEL_MODE_NAMES[format->mode] : mode_for(info->dtype), info->n_bands);
        if (is_taken)
                return 0;
        return why_set(why, -EBADMSG,
                       "has numbers of %s, mode=%s delivers %s; with mode=F numbers of any type become float32",
                       dlp_dtype_name(info->dtype), PIXEL_MODE_NAMES[format->mode], dlp_dtype_name(format->dtype));
}

static uint64_t picture_bands_row_bytes(const struct band_info *info) {
        return (uint64_t)info->width * info->n_bands * dlp_dtype_bytes(info->dtype);
}

static int bands_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      struct codec_opened *ret_opened, struct why *why) {
        const struct pixel_format *format = recipe_format(codec->recipe);
        struct band_info *info = &tools->bands;
        int r = decoder_open_bands(tools->decoder, input->bytes, input->n_bytes, info, why);

        if (r == 0)
                r = picture_bands_check(format, info, why);
        if (r < 0)
                return r;
        tools->info = (struct image_info){ .width = info->width, .height = info->height, .format = "TIFF" };
        ret_opened->width = info->width;
        ret_opened->height = info->height;
        ret_opened->shape[0] = info->height;
        ret_opened->shape[1] = info->width;
        ret_opened->shape[2] = info->n_bands;
        ret_opened->n_bytes = (uint64_t)info->height * info->width * pixel_format_bytes(format);
        ret_opened->need_bytes = decoder_need_bands(tools->decoder);
        if (info->dtype != format->dtype)
                ret_opened->need_bytes += picture_bands_row_bytes(info) * info->height;
        return 0;
}

static int convert_rows(const struct codec *codec, const struct codec_tools *tools, uint8_t *out, size_t stride,
                        struct why *why) {
        const struct band_info *info = &tools->bands;
        int r = 0;

        for (uint32_t y = 0; y < info->height && r == 0; y++)
                r = convert(info->dtype, tools->elements.bytes + y * picture_bands_row_bytes(info),
                            recipe_format(codec->recipe)->dtype, out + y * stride, (size_t)info->width * info->n_bands,
                            why);
        return r;
}

static int bands_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        uint8_t *out, struct why *why) {
        const struct pixel_format *format = recipe_format(codec->recipe);
        const struct band_info *info = &tools->bands;
        size_t stride = input->row_stride > 0 ? input->row_stride : info->width * pixel_format_bytes(format);
        bool is_converted = info->dtype != format->dtype;
        int r = is_converted ? codec_memory_reserve(&tools->elements, picture_bands_row_bytes(info) * info->height, why)
                             : 0;

        if (r == 0)
                r = decoder_read_bands(tools->decoder, is_converted ? tools->elements.bytes : out,
                                       is_converted ? picture_bands_row_bytes(info) : stride, why);
        if (r == 0 && is_converted)
                r = convert_rows(codec, tools, out, stride, why);
        if (r == 0)
                tools->counts.n_decoded[DECODED_BY_OTHERS]++;
        return r;
}

static void bands_close(struct codec_tools *tools) {
        decoder_close(tools->decoder);
}

static int bands_refuse_room(const struct codec *codec, const struct codec_opened *opened, uint64_t room_bytes,
                             struct why *why) {
        return CODEC_PICTURE.refuse_room(codec, opened, room_bytes, why);
}

static int bands_refuse_memory(const struct codec_tools *tools, const struct codec_opened *opened,
                               uint64_t allowed_bytes, struct why *why) {
        return CODEC_PICTURE.refuse_memory(tools, opened, allowed_bytes, why);
}

static int bands_refuse_shape(const struct codec_opened *opened, const int64_t *other, struct why *why) {
        return CODEC_PICTURE.refuse_shape(opened, other, why);
}

const struct codec_type CODEC_BANDS = {
        .name = "bands",
        .interprets = INTERPRETS_ALL,
        .opening = STAGE_HEADER,
        .rendering = STAGE_DECODE,
        .form = bands_form,
        .open = bands_open,
        .render = bands_render,
        .close = bands_close,
        .refuse_room = bands_refuse_room,
        .refuse_memory = bands_refuse_memory,
        .refuse_shape = bands_refuse_shape,
};
