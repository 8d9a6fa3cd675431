/* mlm: hides tokens and makes labels of them (collate/mlm.h). It is a step before pad, because labels are padded with
 * their tokens. */

#include <errno.h>
#include <stddef.h>

#include "daemon/collate/collation_type.h"

#define NOT_GIVEN UINT32_MAX

static void init(struct collation *collation) {
        collation->mlm = (struct mlm_terms){ .mask = NOT_GIVEN, .p = 0.15, .masked = 0.8, .random = 0.1 };
}

static bool collation_mlm_is_share(double number) {
        return number >= 0 && number <= 1;
}

static int check(const struct collation *collation, struct why *why) {
        const struct mlm_terms *mlm = &collation->mlm;

        if (mlm->mask == NOT_GIVEN || mlm->vocab == 0)
                return why_set(why, -EINVAL,
                               "it needs the token that hides others and the number of tokens, as in "
                               "mlm(mask=103, vocab=30522)");
        if (!collation_mlm_is_share(mlm->p) || !collation_mlm_is_share(mlm->masked) ||
            !collation_mlm_is_share(mlm->random) || mlm->masked + mlm->random > 1)
                return why_set(why, -EINVAL,
                               "p is %g, masked %g and random %g; expected 0 to 1 each, and 1 at most for masked and "
                               "random together",
                               mlm->p, mlm->masked, mlm->random);
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

const struct collation_type COLLATION_MLM = {
        .name = "mlm",
        .arguments = { { "mask", COLLATION_WHOLE, offsetof(struct collation, mlm.mask) },
                       { "vocab", COLLATION_COUNT, offsetof(struct collation, mlm.vocab) },
                       { "p", COLLATION_NUMBER, offsetof(struct collation, mlm.p) },
                       { "masked", COLLATION_NUMBER, offsetof(struct collation, mlm.masked) },
                       { "random", COLLATION_NUMBER, offsetof(struct collation, mlm.random) },
                       { "special", COLLATION_LIST, offsetof(struct collation, mlm.n_special), .is_optional = true } },
        .init = init,
        .check = check,
        .apply = apply,
};
