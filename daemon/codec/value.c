/* Values: arrays of fixed size. Some the source knows without reading anything (a column). Others are stored element by
 * element, and only their byte order may have to change. Their first dimension may vary. */

#include <errno.h>
#include <string.h>

#include "daemon/codec/codec_type.h"

/* Of one sample; of one row if the first dimension varies. */
static uint64_t value_unit_bytes(const struct schema_field *field) {
        uint64_t n_bytes = dlp_dtype_bytes(field->dtype);

        for (uint32_t i = 0; i < field->n_dims; i++)
                n_bytes *= field->shape[i] >= 0 ? (uint64_t)field->shape[i] : 1;
        return n_bytes;
}

static bool value_varies(const struct schema_field *field) {
        return field->n_dims > 0 && field->shape[0] < 0;
}

/* Values that differ in size, or that some samples do not have, are ragged. */
static int value_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                      struct why *why) {
        ret_form->dtype = (enum dlp_dtype)codec->field.dtype;
        ret_form->n_dims = codec->field.n_dims;
        memcpy(ret_form->shape, codec->field.shape, sizeof(ret_form->shape));
        ret_form->how = COLLATE_STACK;
        if (!value_varies(&codec->field) && !codec->field.may_be_absent)
                return 0;
        ret_form->unit_bytes = value_unit_bytes(&codec->field);
        return codec_form_ragged(codec, terms, 1, ret_form, why);
}

static int value_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      struct codec_opened *ret_opened, struct why *why) {
        const struct schema_field *field = &codec->field;
        uint64_t unit = value_unit_bytes(field);
        uint64_t n_bytes = field->is_stored      ? input->n_bytes
                           : value_varies(field) ? source_length(input->source, input->sample, codec->idx_field)
                                                 : unit;

        (void)tools;
        if (value_varies(field) ? unit == 0 || n_bytes % unit != 0 : n_bytes != unit)
                return why_set(why, -EBADMSG, "has %llu bytes, its shape needs %s%llu", (unsigned long long)n_bytes,
                               value_varies(field) ? "a multiple of " : "", (unsigned long long)unit);
        memcpy(ret_opened->shape, field->shape, field->n_dims * sizeof(field->shape[0]));
        if (value_varies(field))
                ret_opened->shape[0] = (int64_t)(n_bytes / unit);
        ret_opened->n_bytes = n_bytes;
        ret_opened->need_bytes = 0;
        return 0;
}

void codec_swap_elements(uint8_t *bytes, uint64_t n_bytes, uint64_t n_element) {
        for (uint64_t at = 0; at < n_bytes; at += n_element)
                for (uint64_t low = at, high = at + n_element - 1; low < high; low++, high--) {
                        uint8_t byte = bytes[low];

                        bytes[low] = bytes[high];
                        bytes[high] = byte;
                }
}

static void value_settle(const struct schema_field *field, uint8_t *row, uint64_t n_bytes) {
        if (field->is_big_endian)
                codec_swap_elements(row, n_bytes, dlp_dtype_bytes(field->dtype));
        if (field->dtype == DLP_DTYPE_BOOL) /* for C and torch a byte of 2 is neither true nor false */
                for (uint64_t i = 0; i < n_bytes; i++)
                        row[i] = row[i] != 0;
}

void codec_settle_row(const struct codec *codec, uint8_t *row) {
        if (codec->field.is_big_endian || codec->field.dtype == DLP_DTYPE_BOOL)
                value_settle(&codec->field, row, value_unit_bytes(&codec->field));
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
        value_settle(&codec->field, out, input->n_bytes);
        return 0;
}

const struct codec_type CODEC_VALUE = {
        .name = "value",
        .form = value_form,
        .open = value_open,
        .render = value_render,
        .refuse_room = codec_refuse_ragged,
};
