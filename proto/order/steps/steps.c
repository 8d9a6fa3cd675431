#include "proto/order/steps/steps.h"

#include "proto/base/step_text.h"

static const struct dlp_step_type *const TYPES[] = {
        &dlp_step_buckets, &dlp_step_class_balanced, &dlp_step_grouped, &dlp_step_max_tokens, &dlp_step_pack,
        &dlp_step_random,  &dlp_step_random_split,   &dlp_step_subset,  &dlp_step_weighted,
};
const char dlp_step_names[] =
        "buckets class_balanced grouped max_tokens pack random random_split subset weighted"; /* names as in TYPES */

const struct dlp_step_type *dlp_step_type_find(const char *name, size_t n) {
        for (size_t i = 0; i < sizeof(TYPES) / sizeof(TYPES[0]); i++)
                if (word_is(name, n, TYPES[i]->name))
                        return TYPES[i];
        return NULL;
}
