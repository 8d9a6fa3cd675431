#include "daemon/codec/plugged/plugged_forms.h"

#include <errno.h>

#include "proto/base/shown/amounts.h"

static const uint32_t DTYPES[DLP_N_DTYPES] = {
        [DLP_DTYPE_UINT8] = DLPLUGIN_UINT8,     [DLP_DTYPE_INT8] = DLPLUGIN_INT8,
        [DLP_DTYPE_UINT16] = DLPLUGIN_UINT16,   [DLP_DTYPE_INT16] = DLPLUGIN_INT16,
        [DLP_DTYPE_UINT32] = DLPLUGIN_UINT32,   [DLP_DTYPE_INT32] = DLPLUGIN_INT32,
        [DLP_DTYPE_UINT64] = DLPLUGIN_UINT64,   [DLP_DTYPE_INT64] = DLPLUGIN_INT64,
        [DLP_DTYPE_FLOAT16] = DLPLUGIN_FLOAT16, [DLP_DTYPE_BFLOAT16] = DLPLUGIN_BFLOAT16,
        [DLP_DTYPE_FLOAT32] = DLPLUGIN_FLOAT32, [DLP_DTYPE_FLOAT64] = DLPLUGIN_FLOAT64,
        [DLP_DTYPE_BOOL] = DLPLUGIN_BOOL,
};

/* The number of a dtype for plug-ins; 0: they have none like it. */
static uint32_t forms_dtype(enum dlp_dtype dtype) {
        return DTYPES[dtype];
}

bool forms_find_dtype(uint32_t number, uint32_t *ret_dtype) {
        for (uint32_t dtype = 0; dtype < DLP_N_DTYPES; dtype++)
                if (DTYPES[dtype] == number && number != 0) {
                        *ret_dtype = dtype;
                        return true;
                }
        return false;
}

void forms_to_field(const struct dlplugin_form *form, struct field_form *ret_form) {
        enum dlp_dtype dtype = 0;

        while (DTYPES[dtype] != form->dtype)
                dtype++;
        ret_form->dtype = dtype;
        ret_form->how = COLLATE_STACK;
        ret_form->n_dims = form->n_dims;
        for (uint32_t i = 0; i < form->n_dims; i++)
                ret_form->shape[i] = form->shape[i];
}

static int plugged_forms_refuse(const struct codec *codec, size_t column, const char *what, struct why *why) {
        return why_set(why, -EINVAL, "pipeline, column %zu: plugin: field %s %s", column, codec->field.name, what);
}

int forms_of_codec(const struct codec *codec, const struct source *source, size_t column,
                   struct dlplugin_form *ret_form, struct why *why) {
        const struct codec_terms terms = { .source = source, .batch_size = 1, .max_pixels = 1 };
        struct field_form form;
        int r;

        if (codec_is_gathered(codec))
                return plugged_forms_refuse(
                        codec, column, "is put together from several places: no plug-in can be applied to it", why);
        if (codec->field.may_be_absent)
                return plugged_forms_refuse(codec, column, "is not in all samples: no plug-in can be applied to it",
                                            why);
        r = codec_form(codec, &terms, &form, why);
        if (r < 0)
                return r;
        *ret_form = (struct dlplugin_form){ .dtype = forms_dtype(form.dtype), .n_dims = form.n_dims };
        for (uint32_t i = 0; i < form.n_dims; i++) {
                ret_form->shape[i] = form.shape[i];
                if (form.shape[i] < 0 || form.how != COLLATE_STACK)
                        return plugged_forms_refuse(
                                codec, column,
                                "has samples of several shapes: let steps before the plug-in give them one, such as "
                                "center_crop(224)",
                                why);
        }
        if (form.how != COLLATE_STACK || ret_form->dtype == 0)
                return plugged_forms_refuse(codec, column, "is not an array: no plug-in can be applied to it", why);
        return 0;
}

void forms_fini(struct codec *codec) {
        for (uint32_t i = 0; i < codec->plugged.n_uses; i++)
                plugin_use_free(codec->plugged.uses[i]);
        codec_free(codec->plugged.before);
}

int forms_seats(struct codec_tools *tools, struct why *why) {
        int r = tools->seats ? 0 : plugin_seats_new(&tools->seats);

        return r < 0 ? why_errno(why, r, "a plug-in") : 0;
}

int forms_refuse_memory(const struct codec_tools *tools, const struct codec_opened *opened, uint64_t allowed_bytes,
                        struct why *why) {
        char need[AMOUNT_TEXT_MAX], allowed[AMOUNT_TEXT_MAX];

        format_compared(need, opened->need_bytes, allowed, allowed_bytes);
        return why_set(why, -EFBIG,
                       "needs %s to be decoded and given to plug-ins, %s are allowed (a quarter of memory_limit, 1 GiB "
                       "at most): raise memory_limit, or crop or resize earlier in the pipeline",
                       need, allowed);
}
