/* pack: samples one after the other in rows of one length; the batch size counts rows. The plan is made by the step of
 * that name of the order, from the lengths of the field. */

#include <errno.h>

#include "daemon/collate/collation_type.h"
#include "daemon/collate/packing.h"

enum {
        SIZE,
        STRATEGY,
        LONG,
        ROWS,
        BINS,
        SAMPLES,
        SHUFFLE,
        VALUE,
        LABELS
};

static int settle(struct value *values, struct collation *collation, struct why *why) {
        (void)why;
        collation->pack = (struct packing_terms){ .value = collation_number(&values[VALUE]),
                                                  .size = (uint32_t)values[SIZE].whole,
                                                  .strategy = values[STRATEGY].choice,
                                                  .on_long = values[LONG].choice,
                                                  .rows = (uint32_t)values[ROWS].whole,
                                                  .bins = (uint32_t)values[BINS].whole,
                                                  .max_samples = (uint32_t)values[SAMPLES].whole,
                                                  .shuffle = values[SHUFFLE].choice,
                                                  .labels = values[LABELS].choice };
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

#define COUNT(argument)                                                                                                \
        { ARGUMENT_WHOLE, argument, NULL, 1, COLLATION_WHOLE_MAX, .is_optional = true, .needs_key = true }

const struct collation_type collation_pack = {
        .kind = { .name = "pack",
                  .doc = "Rows of `size` elements, which several samples share; the batch size counts rows. For "
                         "arrays of numbers in one dimension. Which samples share a row is planned from their "
                         "lengths before they are read, by the sampler's step `pack`, which explains `strategy`, "
                         "`long`, `rows`, `bins`, `max_samples` and `shuffle` (see dataloaderd-samplers(7)); it "
                         "comes after the steps of the option sampler. Where no sample is, elements are `value`, as "
                         "for `pad`. The lengths are those of the field where they are known without reading it "
                         "(token files of Megatron, lists of Arrow and of Parquet); else they must be handed over "
                         "as a column with the field's name. A sample that is not as long as its column says is "
                         "damaged. With `on_error=skip` its place in the row stays empty; `on_error=substitute` is "
                         "refused.\n\n"
                         "For a field with n rows of N elements a batch has `FIELD` [n, N], `FIELD_positions` "
                         "(int64: where an element is in its piece of a sample, from 0), `FIELD_segments` (int32: "
                         "the number of the piece in its row, from 1; 0 where nothing is), with `labels` "
                         "`FIELD_labels` (int64, -100 where nothing is: `same` are the elements without the first one "
                         "of each piece, as models of transformers want them, `shifted` the elements that follow), "
                         "and `cu_seqlens` (int32, for flash attention: where pieces begin if all rows are laid end "
                         "to end; what is left of a row is a piece of its own). The first dimension of these is not "
                         "the number of samples; other fields of the batch have an entry for each sample, in the "
                         "sequence in which they lie in the rows. All arguments but the first one have names.",
                  .example = "pack(4096)",
                  .arguments =
                          ARGUMENTS([SIZE] = { ARGUMENT_WHOLE, "size", NULL, 1, COLLATION_WHOLE_MAX },
                                    [STRATEGY] = { ARGUMENT_CHOICE, "strategy", "bfd", .choices = PACKING_STRATEGIES,
                                                   .n_choices = 3, .needs_key = true },
                                    [LONG] = { ARGUMENT_CHOICE, "long", .choices = PACKING_LONG, .n_choices = 5,
                                               .is_optional = true, .needs_key = true },
                                    [ROWS] = COUNT("rows"), [BINS] = COUNT("bins"), [SAMPLES] = COUNT("max_samples"),
                                    [SHUFFLE] = { ARGUMENT_CHOICE, "shuffle", .choices = PACKING_SHUFFLE,
                                                  .n_choices = 3, .is_optional = true, .needs_key = true },
                                    [VALUE] = COLLATION_VALUE, [LABELS] = COLLATION_LABELS) },
        .is_of_batch = true,
        .settle = settle,
        .added = added,
        .apply = apply,
};
