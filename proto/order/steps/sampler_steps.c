#include "proto/order/steps/sampler_steps.h"

#include "proto/base/step_text.h"

static const struct dlp_step_type *const TYPES[] = {
        &dlp_step_buckets,        &dlp_step_class_balanced, &dlp_step_curriculum,   &dlp_step_grouped,
        &dlp_step_length_grouped, &dlp_step_max_tokens,     &dlp_step_mix,          &dlp_step_numpy_shuffle,
        &dlp_step_pack,           &dlp_step_random,         &dlp_step_random_split, &dlp_step_repeat,
        &dlp_step_repeat_factor,  &dlp_step_stratified,     &dlp_step_subset,       &dlp_step_weighted,
};
/* Names as in TYPES. */
const char dlp_step_names[] =
        "buckets class_balanced curriculum grouped length_grouped max_tokens mix numpy_shuffle pack random random_split repeat repeat_factor stratified subset weighted";

const struct dlp_step_type *dlp_step_type_find(const char *name, size_t n) {
        for (size_t i = 0; i < sizeof(TYPES) / sizeof(TYPES[0]); i++)
                if (word_is(name, n, TYPES[i]->name))
                        return TYPES[i];
        return NULL;
}
