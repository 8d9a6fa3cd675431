/* mlm: hides tokens and makes labels of them (collate/mlm.h). It is a step before pad, because labels are padded with
 * their tokens. */

#include <errno.h>

#include "daemon/collate/collation_type.h"

enum {
        MASK,
        VOCAB,
        P,
        MASKED,
        RANDOM,
        SPECIAL
};

static int settle(struct value *values, struct collation *collation, struct why *why) {
        struct mlm_terms *mlm = &collation->mlm;

        *mlm = (struct mlm_terms){ .mask = (uint32_t)values[MASK].whole,
                                   .vocab = (uint32_t)values[VOCAB].whole,
                                   .p = values[P].number,
                                   .masked = values[MASKED].number,
                                   .random = values[RANDOM].number,
                                   .n_special = values[SPECIAL].n_list };
        for (uint32_t i = 0; i < mlm->n_special; i++)
                mlm->special[i] = (uint32_t)values[SPECIAL].list[i];
        if (mlm->masked + mlm->random > 1)
                return why_set(why, -EINVAL, "masked is %g and random %g; expected 1 at most for both together",
                               mlm->masked, mlm->random);
        return 0;
}

static int apply(const struct collation *collation, struct field_form *form, struct why *why) {
        const struct mlm_terms *mlm = &collation->mlm;
        uint32_t largest = mlm->mask > mlm->vocab - 1 ? mlm->mask : mlm->vocab - 1;
        double minimum, maximum;

        if (form->pad.labels != PADDING_LABELS_NONE)
                return why_set(why, -EINVAL, "gets its labels from mlm: leave labels out of pad");
        if (form->n_dims != 1 || !collation_is_whole(form->dtype, &minimum, &maximum))
                return why_set(why, -EINVAL, "is %s with %u dimensions; tokens are whole numbers in one dimension",
                               dlp_dtype_name(form->dtype), form->n_dims);
        if (largest > maximum)
                return why_set(why, -EINVAL, "is %s, which cannot hold the token %u: use to(int32) before mlm",
                               dlp_dtype_name(form->dtype), largest);
        form->mlm = *mlm;
        form->pad.labels = PADDING_LABELS_WRITTEN;
        return 0;
}

const struct collation_type collation_mlm = {
        .kind = { .name = "mlm",
                  .doc = "A step before `pad`: hides tokens for masked language modelling. Each token is chosen "
                         "with probability `p`, except those of `special` (16 at most). A chosen one is in "
                         "`FIELD_labels`, where all others are -100; in the tokens it becomes the token `mask` (a "
                         "share of `masked`), any one below `vocab` (a share of `random`), or stays. All arguments "
                         "have names. The draws depend on seed, epoch, sample and the token's place: a sample is "
                         "hidden alike in any batch. For example `tokens: mlm(mask=103, vocab=30522, "
                         "special=0:101:102) pad(max=512, truncate=true)`.",
                  .example = "mlm(mask=103, vocab=30522)",
                  .arguments = ARGUMENTS([MASK] = { ARGUMENT_WHOLE, "mask", NULL, 0, COLLATION_WHOLE_MAX,
                                                    .needs_key = true },
                                         [VOCAB] = { ARGUMENT_WHOLE, "vocab", NULL, 1, COLLATION_WHOLE_MAX,
                                                     .needs_key = true },
                                         [P] = { ARGUMENT_NUMBER, "p", "0.15", 0, 1, .needs_key = true },
                                         [MASKED] = { ARGUMENT_NUMBER, "masked", "0.8", 0, 1, .needs_key = true },
                                         [RANDOM] = { ARGUMENT_NUMBER, "random", "0.1", 0, 1, .needs_key = true },
                                         [SPECIAL] = { ARGUMENT_LIST, "special", NULL, 0, COLLATION_WHOLE_MAX,
                                                       .is_whole = true, .counts = (2u << MLM_SPECIAL_MAX) - 2,
                                                       .form = "ID:ID:..., 16 tokens at most", .is_optional = true,
                                                       .needs_key = true }) },
        .settle = settle,
        .apply = apply,
};
