/* pack: samples one after the other in rows of one length; the batch size counts rows. The plan is made by the step of
 * that name of the order, from the lengths of the field. */

#include <errno.h>
#include <math.h>
#include <stddef.h>

#include "daemon/collate/collation_type.h"
#include "daemon/collate/packing.h"

static const char *const LABELS[] = { "none", "same", "shifted" };

static void init(struct collation *collation) {
        collation->pack.value = NAN;
}

static int check(const struct collation *collation, struct why *why) {
        if (collation->pack.size == 0)
                return why_set(why, -EINVAL, "it needs the number of elements of a row, as in pack(4096)");
        return 0;
}

static const char *added(const struct collation *collation, unsigned idx) {
        const char *names[] = { "positions", "segments", NULL, NULL };
        unsigned n = 2;

        if (collation->pack.labels != PADDING_LABELS_NONE)
                names[n++] = "labels";
        if (collation->pack.has_seqlens)
                names[n++] = COLLATION_WHOLE_NAME "cu_seqlens";
        return idx < n ? names[idx] : NULL;
}

static int apply(const struct collation *collation, struct field_form *form, struct why *why) {
        double minimum, maximum, fill;
        int r;

        if (form->dtype == DLP_DTYPE_TEXT || form->dtype == DLP_DTYPE_TEXTS || form->dtype == DLP_DTYPE_BYTES)
                return why_set(why, -EINVAL, "is %s; only numbers can be packed",
                               form->dtype == DLP_DTYPE_BYTES ? "bytes" : "text");
        if (form->n_dims != 1)
                return why_set(why, -EINVAL, "has %u dimensions; what is packed has one", form->n_dims);
        if (form->is_gathered)
                return why_set(why, -EINVAL, "is put together from several places and has one length: use stack");
        if (collation->pack.labels != PADDING_LABELS_NONE && !collation_is_whole(form->dtype, &minimum, &maximum))
                return why_set(why, -EINVAL, "is %s; labels are made of whole numbers", dlp_dtype_name(form->dtype));
        r = collation_fill(form, collation->pack.value, &fill, why);
        if (r < 0)
                return r;
        form->how = COLLATE_PACKED;
        form->takes_share = false;
        form->pack = collation->pack;
        form->pack.value = fill;
        return 0;
}

const struct collation_type COLLATION_PACK = {
        .name = "pack",
        .first_needs_no_name = true,
        .arguments = { { "size", COLLATION_COUNT, offsetof(struct collation, pack.size) },
                       { "strategy", COLLATION_CHOICE, offsetof(struct collation, pack.strategy),
                         .choices = PACKING_STRATEGIES, .n_choices = 3 },
                       { "long", COLLATION_CHOICE, offsetof(struct collation, pack.on_long), .choices = PACKING_LONG,
                         .n_choices = 5, .is_optional = true },
                       { "rows", COLLATION_COUNT, offsetof(struct collation, pack.rows), .is_optional = true },
                       { "bins", COLLATION_COUNT, offsetof(struct collation, pack.bins), .is_optional = true },
                       { "max_samples", COLLATION_COUNT, offsetof(struct collation, pack.max_samples),
                         .is_optional = true },
                       { "shuffle", COLLATION_CHOICE, offsetof(struct collation, pack.shuffle),
                         .choices = PACKING_SHUFFLE, .n_choices = 3, .is_optional = true },
                       { "value", COLLATION_NUMBER, offsetof(struct collation, pack.value), .is_optional = true },
                       { "labels", COLLATION_CHOICE, offsetof(struct collation, pack.labels), .choices = LABELS,
                         .n_choices = 3, .is_optional = true } },
        .init = init,
        .check = check,
        .added = added,
        .apply = apply,
};
