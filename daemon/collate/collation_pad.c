/* pad: all samples are made as long as the longest one of their batch, or as `to` says; a mask says what is real. */

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "daemon/collate/collation_type.h"

static const char *const SIDES[] = { "right", "left" };
static const char *const YES_NO[] = { "false", "true" };
static const char *const LABELS[] = { "none", "same", "shifted" };
static const char *const OF_STEP[] = { "padding", "fill", "padding_mode", NULL };

static void init(struct collation *collation) {
        collation->pad.value = NAN;
        collation->pad.multiple = 1;
}

static int check(const struct collation *collation, struct why *why) {
        const struct padding_terms *pad = &collation->pad;

        if (pad->to[0] > 0 && pad->most[0] > 0)
                return why_set(why, -EINVAL,
                               "max is for to=longest; with to=%u no sample may be longer anyway: leave "
                               "max out",
                               pad->to[0]);
        if (pad->truncates && pad->to[0] == 0 && pad->most[0] == 0)
                return why_set(why, -EINVAL, "truncate=true needs to=N or max=N, the length that samples are cut to");
        return 0;
}

static const char *added(const struct collation *collation, unsigned idx) {
        bool has_labels = collation->has_mlm || collation->pad.labels != PADDING_LABELS_NONE;

        if (idx == 0 && collation->pad.mask[0])
                return collation->pad.mask;
        return idx == 0 ? "mask" : idx == 1 && has_labels ? "labels" : NULL;
}

bool collation_is_whole(enum dlp_dtype dtype, double *ret_minimum, double *ret_maximum) {
        uint64_t bits = 8 * dlp_dtype_bytes(dtype);

        switch (dtype) {
        case DLP_DTYPE_BOOL:
                *ret_minimum = 0;
                *ret_maximum = 1;
                return true;
        case DLP_DTYPE_UINT8:
        case DLP_DTYPE_UINT16:
        case DLP_DTYPE_UINT32:
        case DLP_DTYPE_UINT64:
                *ret_minimum = 0;
                *ret_maximum = ldexp(1, (int)bits) - 1;
                return true;
        case DLP_DTYPE_INT8:
        case DLP_DTYPE_INT16:
        case DLP_DTYPE_INT32:
        case DLP_DTYPE_INT64:
                *ret_minimum = -ldexp(1, (int)bits - 1);
                *ret_maximum = ldexp(1, (int)bits - 1) - 1;
                return true;
        default:
                return false;
        }
}

int collation_fill(const struct field_form *form, double value, double *ret_fill, struct why *why) {
        bool is_said = !isnan(value);
        double minimum, maximum, fill = is_said ? value : strcmp(form->name, "labels") == 0 ? LABEL_IGNORED : 0;

        /* 2^53: above it a double does not say which whole number is meant */
        if (collation_is_whole(form->dtype, &minimum, &maximum) &&
            !(fill == floor(fill) && fill >= minimum && fill <= maximum && fabs(fill) <= 0x1p53))
                return why_set(
                        why, -EINVAL, "is %s, which cannot hold value=%.17g%s", dlp_dtype_name(form->dtype), fill,
                        is_said ? ""
                                : ", with which a field that is called labels is filled: write another step to(), "
                                  "or value=");
        *ret_fill = fill;
        return 0;
}

static int collation_pad_check_labels(const struct field_form *form, struct why *why) {
        double minimum, maximum;

        if (form->n_dims == 1 && collation_is_whole(form->dtype, &minimum, &maximum))
                return 0;
        return why_set(why, -EINVAL, "is %s with %u dimensions; labels are made of whole numbers in one dimension",
                       dlp_dtype_name(form->dtype), form->n_dims);
}

static int check_pictures(const struct padding_terms *pad, const struct field_form *form, struct why *why) {
        if (pad->is_left || pad->truncates)
                return why_set(why, -EINVAL, "is pictures, which are padded on the right and at the bottom: leave %s",
                               pad->is_left ? "side out" : "truncate out, and crop or resize them");
        if (pad->to[0] > 0 || pad->most[0] > 0 || (form->bounds[0] > 0 && form->bounds[1] > 0))
                return 0;
        return why_set(why, -EINVAL,
                       "is pictures of any size, and the room for them has to be known: end the steps with one that "
                       "limits both sides, as resize(short=800, max=1333), or say pad(max=HEIGHT:WIDTH)");
}

static int collation_pad_check_rows(const struct padding_terms *pad, const struct field_form *form, struct why *why) {
        if (form->padded_dim > 0 && (pad->is_left || pad->truncates))
                return why_set(why, -EINVAL, "is padded along its last dimension, on the right: leave %s out%s",
                               pad->is_left ? "side" : "truncate",
                               pad->is_left ? "" : ", and cut longer samples with columns(N)");
        for (uint32_t i = 0; i < form->n_dims; i++)
                if (i != form->padded_dim && form->shape[i] < 1)
                        return why_set(why, -EINVAL, "%s and cannot be padded",
                                       form->shape[i] == 0 ? "has rows without elements"
                                                           : "varies in more than its first dimension");
        if (pad->to[0] != pad->to[1] || pad->most[0] != pad->most[1])
                return why_set(why, -EINVAL, "is padded along one dimension, so that one number is expected: %s=%u",
                               pad->to[0] ? "to" : "max", pad->to[0] ? pad->to[0] : pad->most[0]);
        return 0;
}

static int apply(const struct collation *collation, struct field_form *form, struct why *why) {
        const struct padding_terms *pad = &collation->pad;
        double fill = 0;
        int r;

        if (form->dtype == DLP_DTYPE_TEXT || form->dtype == DLP_DTYPE_TEXTS || form->dtype == DLP_DTYPE_BYTES)
                return why_set(why, -EINVAL, "is %s; only numbers can be padded%s",
                               form->dtype == DLP_DTYPE_BYTES ? "bytes" : "text",
                               form->dtype == DLP_DTYPE_BYTES ? ": name a step that makes numbers of them" : "");
        if (form->n_dims == 0)
                return why_set(why, -EINVAL,
                               "is one number a sample: there is nothing to pad; name it in a part of "
                               "its own");
        if (form->is_gathered)
                return why_set(why, -EINVAL, "is put together from several places and has one length: use stack");
        if (form->n_padded_dims == 0)
                form->n_padded_dims = 1;
        r = form->n_padded_dims > 1 ? check_pictures(pad, form, why) : collation_pad_check_rows(pad, form, why);
        if (r == 0)
                r = collation_fill(form, pad->value, &fill, why);
        if (r == 0 && pad->labels != PADDING_LABELS_NONE)
                r = collation_pad_check_labels(form, why);
        if (r < 0)
                return r;
        form->how = COLLATE_PADDED;
        form->pad = *pad;
        form->pad.value = fill;
        return 0;
}

const struct collation_type COLLATION_PAD = {
        .name = "pad",
        .arguments = { { "value", COLLATION_NUMBER, offsetof(struct collation, pad.value), .is_optional = true },
                       { "multiple", COLLATION_COUNT, offsetof(struct collation, pad.multiple) },
                       { "to", COLLATION_SIZE, offsetof(struct collation, pad.to), .word = "longest" },
                       { "max", COLLATION_SIZE, offsetof(struct collation, pad.most), .is_optional = true },
                       { "side", COLLATION_CHOICE, offsetof(struct collation, pad.is_left), .choices = SIDES,
                         .n_choices = 2 },
                       { "truncate", COLLATION_CHOICE, offsetof(struct collation, pad.truncates), .choices = YES_NO,
                         .n_choices = 2 },
                       { "labels", COLLATION_CHOICE, offsetof(struct collation, pad.labels), .choices = LABELS,
                         .n_choices = 3, .is_optional = true },
                       { "mask", COLLATION_NAME, offsetof(struct collation, pad.mask), .is_optional = true } },
        .of_step = OF_STEP,
        .init = init,
        .check = check,
        .added = added,
        .apply = apply,
};
