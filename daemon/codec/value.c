/* Values: arrays of fixed size. Some the source knows without reading anything (a column). Others are stored element by
 * element, and only their byte order may have to change. */

#include <errno.h>
#include <string.h>

#include "daemon/codec/codec_type.h"

static uint64_t value_bytes(const struct schema_field *field) {
        uint64_t n_bytes = dlp_dtype_bytes(field->dtype);

        for (uint32_t i = 0; i < field->n_dims; i++)
                n_bytes *= (uint64_t)field->shape[i];
        return n_bytes;
}

static int value_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                      struct why *why) {
        (void)terms;
        (void)why;
        ret_form->dtype = (enum dlp_dtype)codec->field.dtype;
        ret_form->how = COLLATE_STACK;
        ret_form->n_dims = codec->field.n_dims;
        memcpy(ret_form->shape, codec->field.shape, sizeof(ret_form->shape));
        return 0;
}

static int value_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      struct codec_opened *ret_opened, struct why *why) {
        uint64_t n_bytes = value_bytes(&codec->field);

        (void)tools;
        if (codec->field.is_stored && input->n_bytes != n_bytes)
                return why_set(why, -EBADMSG, "has %zu bytes, its shape needs %llu", input->n_bytes,
                               (unsigned long long)n_bytes);
        memcpy(ret_opened->shape, codec->field.shape, codec->field.n_dims * sizeof(codec->field.shape[0]));
        ret_opened->n_bytes = n_bytes;
        ret_opened->need_bytes = 0;
        return 0;
}

static void swap_elements(uint8_t *bytes, uint64_t n_bytes, uint64_t n_element) {
        for (uint64_t at = 0; at < n_bytes; at += n_element)
                for (uint64_t low = at, high = at + n_element - 1; low < high; low++, high--) {
                        uint8_t byte = bytes[low];

                        bytes[low] = bytes[high];
                        bytes[high] = byte;
                }
}

void codec_settle_row(const struct codec *codec, uint8_t *row) {
        uint64_t n_bytes;

        if (!codec->field.is_big_endian && codec->field.dtype != DLP_DTYPE_BOOL)
                return;
        n_bytes = value_bytes(&codec->field);
        if (codec->field.is_big_endian)
                swap_elements(row, n_bytes, dlp_dtype_bytes(codec->field.dtype));
        if (codec->field.dtype == DLP_DTYPE_BOOL) /* for C and torch a byte of 2 is neither true nor false */
                for (uint64_t i = 0; i < n_bytes; i++)
                        row[i] = row[i] != 0;
}

static int value_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        uint8_t *out, struct why *why) {
        (void)tools;
        (void)why;
        if (!codec->field.is_stored) {
                source_value(input->source, input->sample, codec->idx_field, out);
                return 0;
        }
        memcpy(out, input->bytes, input->n_bytes);
        codec_settle_row(codec, out);
        return 0;
}

const struct codec_type CODEC_VALUE = {
        .name = "value",
        .form = value_form,
        .open = value_open,
        .render = value_render,
};
