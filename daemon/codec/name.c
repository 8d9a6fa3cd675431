/* Names: the name of a sample as text. The source knows it without reading anything. */

#include <string.h>

#include "daemon/codec/codec_type.h"

static int name_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                     struct why *why) {
        (void)codec;
        (void)why;
        ret_form->dtype = DLP_DTYPE_BYTES;
        ret_form->how = COLLATE_RAGGED;
        ret_form->n_dims = 1;
        ret_form->shape[0] = -1;
        ret_form->unit_bytes = 1;
        ret_form->max_bytes = terms->source->max_name_bytes;
        return 0;
}

static int name_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                     struct codec_opened *ret_opened, struct why *why) {
        char name[SOURCE_NAME_SIZE];

        (void)codec;
        (void)tools;
        (void)why;
        ret_opened->n_bytes = source_name(input->source, input->sample, name);
        ret_opened->shape[0] = (int64_t)ret_opened->n_bytes;
        ret_opened->need_bytes = 0;
        return 0;
}

/* Not written directly into the slot: source_name() adds a NUL, for which the slot has no room. */
static int name_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                       uint8_t *out, struct why *why) {
        char name[SOURCE_NAME_SIZE];

        (void)codec;
        (void)tools;
        (void)why;
        memcpy(out, name, source_name(input->source, input->sample, name));
        return 0;
}

const struct codec_type CODEC_NAME = {
        .name = "name",
        .form = name_form,
        .open = name_open,
        .render = name_render,
};
