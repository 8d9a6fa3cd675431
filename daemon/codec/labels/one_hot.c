#include "daemon/codec/labels/one_hot.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/codec/codec_type.h"
#include "daemon/collate/elements.h"

static bool one_hot_is_whole(uint32_t dtype) {
        return dtype == DLP_DTYPE_BOOL || dtype == DLP_DTYPE_UINT8 || dtype == DLP_DTYPE_INT8 ||
               dtype == DLP_DTYPE_UINT16 || dtype == DLP_DTYPE_INT16 || dtype == DLP_DTYPE_UINT32 ||
               dtype == DLP_DTYPE_INT32 || dtype == DLP_DTYPE_UINT64 || dtype == DLP_DTYPE_INT64;
}

bool one_hot_may_be(const struct schema_field *field) {
        return field->kind == FIELD_NUMBER ||
               (field->kind == FIELD_VALUE && field->n_dims == 0 && one_hot_is_whole(field->dtype));
}

static enum dlp_dtype one_hot_dtype_of(const struct codec *codec) {
        return codec->field.kind == FIELD_NUMBER ? DLP_DTYPE_INT64 : (enum dlp_dtype)codec->field.dtype;
}

static int one_hot_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                        struct why *why) {
        uint32_t n_known = codec->field.is_class ? terms->source->n_classes : 0;

        if (n_known > codec->one_hot.n_classes)
                return why_set(why, -EINVAL, "pipeline: num_classes=%u, and %s has %u classes in this dataset",
                               codec->one_hot.n_classes, codec->field.name, n_known);
        if (codec->field.may_be_absent)
                return why_set(why, -EINVAL,
                               "pipeline: some samples have no %s, and only what all of them have can be mixed",
                               codec->field.name);
        ret_form->dtype = DLP_DTYPE_FLOAT32;
        ret_form->how = COLLATE_STACK;
        ret_form->n_dims = 1;
        ret_form->shape[0] = codec->one_hot.n_classes;
        return 0;
}

static int one_hot_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        struct codec_opened *ret_opened, struct why *why) {
        int r = codec->one_hot.number->open(codec, tools, input, ret_opened, why);

        if (r < 0)
                return r;
        if (ret_opened->n_bytes != dlp_dtype_bytes(one_hot_dtype_of(codec)))
                return why_set(why, -EBADMSG, "has %llu bytes; one number is expected",
                               (unsigned long long)ret_opened->n_bytes);
        ret_opened->shape[0] = codec->one_hot.n_classes;
        ret_opened->n_bytes = codec->one_hot.n_classes * sizeof(float);
        return 0;
}

static int one_hot_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                          uint8_t *out, struct why *why) {
        _Alignas(8) uint8_t number[8] = { 0 };
        float *row = (float *)(void *)out;
        int r = codec->one_hot.number->render(codec, tools, input, number, why);
        int64_t class;

        if (r < 0)
                return r;
        class = element_whole(one_hot_dtype_of(codec), number);
        if (class < 0 || class >= codec->one_hot.n_classes)
                return why_set(why, -EBADMSG, "is class %" PRId64 "; num_classes=%u allows 0 to %u", class,
                               codec->one_hot.n_classes, codec->one_hot.n_classes - 1);
        for (uint32_t i = 0; i < codec->one_hot.n_classes; i++)
                row[i] = codec->one_hot.off;
        row[class] = codec->one_hot.on;
        return 0;
}

static const struct codec_type CODEC_ONE_HOT = {
        .name = "one_hot",
        .interprets = INTERPRETS_STORED,
        .form = one_hot_form,
        .open = one_hot_open,
        .render = one_hot_render,
        .refuse_room = codec_refuse_ragged,
        .refuse_memory = codec_refuse_elements,
};

bool one_hot_is(const struct codec *codec) {
        return codec->type == &CODEC_ONE_HOT;
}

void one_hot_set(struct codec *codec, uint32_t n_classes, double smoothing) {
        double off = smoothing / n_classes;

        codec->one_hot.number = codec->type;
        codec->one_hot.n_classes = n_classes;
        codec->one_hot.off = (float)off;
        codec->one_hot.on = (float)(1 - smoothing + off);
        codec->type = &CODEC_ONE_HOT;
}
