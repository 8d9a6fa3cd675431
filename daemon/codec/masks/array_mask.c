#include "daemon/codec/masks/array_mask.h"

/* A number of several bytes is moved byte by byte, three at a time; moving never mixes them. */

#include <errno.h>
#include <string.h>

#include "daemon/codec/masks/channels.h"
#include "daemon/codec/masks/mask_name.h"
#include "daemon/data/formats/npy_header.h"

static bool array_mask_is_float(uint32_t dtype) {
        return dtype == DLP_DTYPE_FLOAT16 || dtype == DLP_DTYPE_BFLOAT16 || dtype == DLP_DTYPE_FLOAT32 ||
               dtype == DLP_DTYPE_FLOAT64;
}

bool array_mask_may_be(const struct schema_field *field) {
        if (!mask_is_name(field->name) || field->is_gathered)
                return false;
        if (field->kind == FIELD_BYTES)
                return field->is_stored && field->coding == CODING_NPY;
        return field->kind == FIELD_VALUE && field->n_dims == 2;
}

int array_mask_choose(struct codec *codec, enum dlp_dtype dtype, struct why *why) {
        struct schema_field *field = &codec->field;

        if (field->kind == FIELD_BYTES) {
                field->kind = FIELD_VALUE;
                field->dtype = dtype;
                field->n_dims = 2;
                field->shape[0] = field->shape[1] = -1;
                codec->steps.has_dtype = true;
        } else if (array_mask_is_float(field->dtype)) {
                return why_set(why, -EINVAL,
                               "pipeline: field %s is a mask by its name, and an array of %s; masks are whole numbers "
                               "or bool: rename the field (the key fields of the configuration), or name it in a part "
                               "of its own",
                               field->name, dlp_dtype_name(field->dtype));
        } else {
                codec->steps.has_dtype = field->dtype != dtype;
        }
        codec->steps.dtype = dtype;
        codec->type = &CODEC_MASK;
        return 0;
}

/* A .npy file may hold anything; where one shape is known for all samples, too, since a file may change. */
static int array_mask_check_npy(const struct codec *codec, const struct codec_input *input, struct why *why) {
        size_t n = input->n_bytes < NPY_HEADER_MAX ? input->n_bytes : NPY_HEADER_MAX;
        struct npy_header header;

        if (codec->field.coding != CODING_NPY || npy_header_read_value(input->bytes, n, &header, why) < 0)
                return 0; /* who reads the elements refuses it */
        if (header.n_dims != 2 || array_mask_is_float(header.dtype))
                return why_set(why, -EBADMSG,
                               "is an array of %s with %u dimensions; with decode(mask=%s) a mask is height x width "
                               "whole numbers or bool",
                               dlp_dtype_name(header.dtype), header.n_dims, dlp_dtype_name(codec->steps.dtype));
        return 0;
}

int array_mask_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                    struct codec_opened *ret_opened, struct why *why) {
        struct geometry *geometry = &tools->geometry;
        int r = array_mask_check_npy(codec, input, why);

        if (r == 0)
                r = codec_load_plan_boxes(codec, tools, input, geometry, why);
        if (r == 0)
                r = codec_value_type(codec)->open(codec, tools, input, ret_opened, why);
        if (r < 0)
                return r;
        if (ret_opened->shape[0] != input->lead_height || ret_opened->shape[1] != input->lead_width)
                return why_set(why, -EBADMSG, "is a mask of %lld x %lld pixels for a picture of %u x %u",
                               (long long)ret_opened->shape[1], (long long)ret_opened->shape[0], input->lead_width,
                               input->lead_height);
        r = recipe_plan_mask(codec->recipe, input->lead_width, input->lead_height, false, codec_seed(codec, input),
                             input->epoch, input->sample, geometry, why);
        if (r < 0)
                return r;
        tools->info =
                (struct image_info){ .width = input->lead_width, .height = input->lead_height, .format = "array" };
        tools->n_rows_bytes = ret_opened->n_bytes;
        ret_opened->need_bytes += ret_opened->n_bytes + recipe_bytes_needed(geometry) + channels_bytes(geometry);
        ret_opened->width = input->lead_width;
        ret_opened->height = input->lead_height;
        ret_opened->shape[0] = geometry->height;
        ret_opened->shape[1] = geometry->width;
        ret_opened->n_bytes = (uint64_t)geometry->height * geometry->width * dlp_dtype_bytes(codec->steps.dtype);
        return 0;
}

/* Only the lowest byte of a number is that of `fill`. */
static void clear_fill(struct geometry *geometry, size_t first_channel) {
        for (uint32_t i = 0; i < geometry->n_stages; i++)
                memset(geometry->stages[i].border.fill + first_channel, 0, N_CHANNELS - first_channel);
}

/* Moves some bytes of each number, from byte `first` on. */
static int move_bytes(struct codec_tools *tools, const struct codec_input *input, size_t n_number, size_t first,
                      uint8_t *out, struct why *why) {
        size_t n = n_number - first < N_CHANNELS ? n_number - first : N_CHANNELS;
        size_t n_pixels = (size_t)tools->geometry.width * tools->geometry.height;
        struct channels channels = { .step = n_number, .width = input->lead_width };
        const uint8_t *moved = NULL;
        int r;

        for (size_t i = 0; i < N_CHANNELS; i++)
                channels.bytes[i] = tools->rows.bytes + first + (i < n ? i : 0);
        clear_fill(&tools->geometry, first == 0 ? 1 : 0);
        r = channels_move(tools, &channels, &moved, why);
        for (size_t k = 0; k < n_pixels && r == 0; k++)
                for (size_t i = 0; i < n; i++)
                        out[k * n_number + first + i] = moved[k * N_CHANNELS + i];
        return r;
}

int array_mask_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      uint8_t *out, struct why *why) {
        size_t n_number = dlp_dtype_bytes(codec->steps.dtype);
        int r = codec_memory_reserve(&tools->rows, tools->n_rows_bytes, why);

        if (r == 0)
                r = codec_value_type(codec)->render(codec, tools, input, tools->rows.bytes, why);
        if (r == 0 && tools->geometry.is_copy)
                memcpy(out, tools->rows.bytes, tools->n_rows_bytes);
        for (size_t first = 0; first < n_number && r == 0 && !tools->geometry.is_copy; first += N_CHANNELS)
                r = move_bytes(tools, input, n_number, first, out, why);
        return r;
}
