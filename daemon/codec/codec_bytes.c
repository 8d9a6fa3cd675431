/* Bytes: a stored field as it is. Each sample has its own length. */

#include <errno.h>
#include <string.h>

#include "daemon/codec/codec_type.h"

/* Room for the longest samples that can be in one batch together. A sample is in a batch twice only where the terms say
 * so. */
int codec_form_ragged(const struct codec *codec, const struct codec_terms *terms, uint64_t factor,
                      struct field_form *form, struct why *why) {
        const struct source *source = terms->source;
        uint64_t longest = 0, together = 0;
        int r = 0;

        form->how = COLLATE_RAGGED;
        if (codec->field.is_stored)
                longest = source_longest_read(source, &codec->idx_field, 1);
        else
                r = source_longest_together(source, codec->idx_field, 1, 1, &longest);
        if (r == 0 && !terms->may_repeat)
                r = source_longest_together(source, codec->idx_field, terms->batch_size, DLP_TENSOR_ALIGN, &together);
        if (r < 0)
                return why_errno(why, -ENOMEM, "stream");
        if (__builtin_mul_overflow(longest, factor, &form->max_bytes) ||
            __builtin_mul_overflow(together, factor, &form->together_bytes))
                return why_set(why, -EOVERFLOW, "the samples of field %s are too large", codec->field.name);
        return 0;
}

static int bytes_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                      struct why *why) {
        ret_form->dtype = DLP_DTYPE_BYTES;
        ret_form->n_dims = 1;
        ret_form->shape[0] = -1;
        ret_form->unit_bytes = 1;
        return codec_form_ragged(codec, terms, 1, ret_form, why);
}

static int bytes_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      struct codec_opened *ret_opened, struct why *why) {
        (void)tools;
        (void)why;
        ret_opened->n_bytes = codec->field.is_stored ? input->n_bytes
                                                     : source_length(input->source, input->sample, codec->idx_field);
        ret_opened->shape[0] = (int64_t)ret_opened->n_bytes;
        ret_opened->need_bytes = 0;
        return 0;
}

static int bytes_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        uint8_t *out, struct why *why) {
        (void)tools;
        (void)why;
        if (codec->field.is_stored)
                memcpy(out, input->bytes, input->n_bytes);
        else
                source_value(input->source, input->sample, codec->idx_field, out);
        return 0;
}

/* The length of this file could not be learned when the index was made. */
int codec_refuse_ragged(const struct codec *codec, const struct codec_opened *opened, uint64_t room_bytes,
                        struct why *why) {
        (void)codec;
        return why_set(why, -EFBIG, "is %llu bytes, the largest that the index knows is %llu",
                       (unsigned long long)opened->n_bytes, (unsigned long long)room_bytes);
}

const struct codec_type CODEC_BYTES = {
        .name = "bytes",
        .rendering = STAGE_COPY,
        .form = bytes_form,
        .open = bytes_open,
        .render = bytes_render,
        .refuse_room = codec_refuse_ragged,
};
