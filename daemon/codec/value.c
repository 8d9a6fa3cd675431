/* Values: of fixed size, known to the source without reading anything. */

#include <errno.h>
#include <string.h>

#include "daemon/codec/codec_type.h"

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
        uint64_t n_bytes = dlp_dtype_bytes(codec->field.dtype);

        (void)tools;
        (void)input;
        (void)why;
        for (uint32_t i = 0; i < codec->field.n_dims; i++) {
                ret_opened->shape[i] = codec->field.shape[i];
                n_bytes *= (uint64_t)codec->field.shape[i];
        }
        ret_opened->n_bytes = n_bytes;
        ret_opened->need_bytes = 0;
        return 0;
}

static int value_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        uint8_t *out, struct why *why) {
        (void)tools;
        (void)why;
        source_value(input->source, input->sample, codec->idx_field, out);
        return 0;
}

const struct codec_type CODEC_VALUE = {
        .name = "value",
        .form = value_form,
        .open = value_open,
        .render = value_render,
};
