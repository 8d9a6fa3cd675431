/* pad: all samples are made as long as the longest one of their batch, or as `to` says; a mask says what is real. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collate/collation_type.h"

enum {
        VALUE,
        MULTIPLE,
        TO,
        MOST,
        SIDE,
        TRUNCATE,
        LABELS,
        MASK
};

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

static const char *const OF_STEP[] = { "padding", "fill", "padding_mode", NULL };

/* N:N is N. Leaves the size as it is where none is given. */
static void pad_read_size(struct value *value, uint32_t size[PADDED_DIMS_MAX]) {
        if (value->n_list == 0)
                return;
        size[0] = (uint32_t)value->list[0];
        size[1] = (uint32_t)value->list[value->n_list - 1];
        value->n_list = size[0] == size[1] ? 1 : 2;
}

static int settle(struct value *values, struct collation *collation, struct why *why) {
        const char *mask = values[MASK].text;
        struct padding_terms pad = { .value = collation_number(&values[VALUE]),
                                     .multiple = (uint32_t)values[MULTIPLE].whole,
                                     .is_left = values[SIDE].choice,
                                     .truncates = values[TRUNCATE].flag,
                                     .labels = values[LABELS].choice };

        pad_read_size(&values[TO], pad.to);
        pad_read_size(&values[MOST], pad.most);
        if (pad.to[0] > 0 && pad.most[0] > 0)
                return why_set(why, -EINVAL,
                               "max is for to=longest; with to=%u no sample may be longer anyway: leave "
                               "max out",
                               pad.to[0]);
        if (pad.truncates && pad.to[0] == 0 && pad.most[0] == 0)
                return why_set(why, -EINVAL, "truncate=true needs to=N or max=N, the length that samples are cut to");
        if (mask && (strlen(mask) >= DLP_TENSOR_NAME_MAX || mask[strspn(mask, NAME_CHARACTERS)] != '\0'))
                return why_set(why, -EINVAL, "mask=%.40s; expected a name of 1 to %u bytes: letters, digits and \"_\"",
                               mask, DLP_TENSOR_NAME_MAX - 1);
        if (mask)
                snprintf(pad.mask, sizeof(pad.mask), COLLATION_WHOLE_NAME "%s", mask);
        collation->pad = pad;
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

#define SIZE .minimum = 1, .maximum = COLLATION_WHOLE_MAX, .is_whole = true, .counts = 1u << 1 | 1u << 2

const struct collation_type collation_pad = {
        .kind = { .name = "pad",
                  .doc = "One array in which all samples have the length of the longest one of their batch, or "
                         "`to`, rounded up to a multiple of `multiple`. What is missing is `value`, on the right or "
                         "on the left; without `value` it is -100 in a field that is called labels, which losses "
                         "leave out, and 0 in any other. The field `FIELD_mask` comes with it, or, for the first "
                         "field of the part, the one that `mask` names, such as attention_mask: bool, one for each "
                         "element along the padded dimension, true where the sample is real, as in the "
                         "attention_mask of Hugging Face. `max` is the most that a sample may have. Longer ones "
                         "(than `to` or `max`) are damaged samples, or with `truncate=true` lose their end. If "
                         "neither is given, the room is that of the longest sample of the dataset, or, if that is "
                         "unknown, a share of the setting `memory_limit`. A sample that does not have the field is "
                         "padded from its beginning. A batch has at least one element along the padded dimension, "
                         "also if all of its samples are empty.\n\n"
                         "`labels` adds `FIELD_labels` to whole numbers in one dimension, int64 and -100 where the "
                         "mask is false: `same` are the elements, as models of transformers want them, which shift "
                         "them by themselves; `shifted` are the elements that follow, -100 for the last one.\n\n"
                         "Pictures are padded on the right and at the bottom to the largest height and the largest "
                         "width of their batch, or to HEIGHT:WIDTH in `to`, each rounded up to a multiple; their "
                         "masks likewise, with the same `value`, which is one of what is delivered, after "
                         "`normalize` and the step `to`. `FIELD_mask` is height by width, as the pixel_mask of "
                         "Hugging Face (the mask of DETR is its opposite). The room follows from the last step that "
                         "limits both sides, such as `resize(short=800, max=1333)`, or from `max`; a larger picture "
                         "is a damaged sample. Pixels stay where they were decoded: rows are as far apart as those "
                         "of the largest picture that may come, so the array has gaps between rows, which its "
                         "strides say. Boxes and labels that are named with the picture are ragged. Masks of "
                         "instances are not padded; they need batches of one size.\n\n"
                         "All arguments have names; a `pad` with a number alone is the step for pictures. Except of "
                         "pictures the array has no gaps. With `to=N` samples are written to where they stay, else "
                         "they are moved together when the batch is whole.",
                  .example = "pad(max=512, truncate=true)",
                  .arguments = ARGUMENTS([VALUE] = COLLATION_VALUE,
                                         [MULTIPLE] = { ARGUMENT_WHOLE, "multiple", "1", 1, COLLATION_WHOLE_MAX,
                                                        .needs_key = true },
                                         [TO] = { ARGUMENT_LIST, "to", "longest", SIZE, .word = "longest",
                                                  .form = "N or HEIGHT:WIDTH", .needs_key = true },
                                         [MOST] = { ARGUMENT_LIST, "max", NULL, SIZE, .form = "N or HEIGHT:WIDTH",
                                                    .is_optional = true, .needs_key = true },
                                         [SIDE] = { ARGUMENT_CHOICE, "side", "right", CHOICES("right", "left"),
                                                    .needs_key = true },
                                         [TRUNCATE] = { ARGUMENT_FLAG, "truncate", "false", .needs_key = true },
                                         [LABELS] = COLLATION_LABELS,
                                         [MASK] = { ARGUMENT_NAME, "mask", .form = "the name of a field",
                                                    .is_optional = true, .needs_key = true }) },
        .of_step = OF_STEP,
        .is_of_batch = true,
        .settle = settle,
        .added = added,
        .apply = apply,
};
