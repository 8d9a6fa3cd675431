/* Bytes: a stored field as it is. Each sample has its own length. */

#include <errno.h>
#include <string.h>

#include "daemon/codec/codec_type.h"

/* Room for the longest samples that can be in one batch together. No sample is in a batch twice, unless it is a
 * substitute for another one. */
static int bytes_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                      struct why *why) {
        ret_form->dtype = DLP_DTYPE_BYTES;
        ret_form->how = COLLATE_RAGGED;
        ret_form->n_dims = 1;
        ret_form->shape[0] = -1;
        ret_form->unit_bytes = 1;
        ret_form->max_bytes = source_longest_read(terms->source, &codec->idx_field, 1);
        if (!terms->may_repeat && source_longest_together(terms->source, codec->idx_field, terms->batch_size,
                                                          DLP_TENSOR_ALIGN, &ret_form->together_bytes) < 0)
                return why_errno(why, -ENOMEM, "stream");
        return 0;
}

static int bytes_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      struct codec_opened *ret_opened, struct why *why) {
        (void)codec;
        (void)tools;
        (void)why;
        ret_opened->shape[0] = (int64_t)input->n_bytes;
        ret_opened->n_bytes = input->n_bytes;
        ret_opened->need_bytes = 0;
        return 0;
}

static int bytes_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        uint8_t *out, struct why *why) {
        (void)codec;
        (void)tools;
        (void)why;
        memcpy(out, input->bytes, input->n_bytes);
        return 0;
}

/* The length of this file could not be learned when the index was made. */
static int bytes_refuse_room(const struct codec *codec, const struct codec_opened *opened,
                             const struct field_layout *field, struct why *why) {
        (void)codec;
        return why_set(why, -EFBIG, "is %llu bytes, the largest that the index knows is %llu",
                       (unsigned long long)opened->n_bytes, (unsigned long long)field->form.max_bytes);
}

const struct codec_type CODEC_BYTES = {
        .name = "bytes",
        .form = bytes_form,
        .open = bytes_open,
        .render = bytes_render,
        .refuse_room = bytes_refuse_room,
};
