/* order/steps/sampler_steps.c: the family of all steps of samplers. */
#include "proto/order/steps/sampler_step.h"

#define KIND(name) extern const struct dlp_step_type dlp_step_##name;
#include "kinds/samplers.h"
#undef KIND

static const struct kind *const SAMPLERS[] = {
#define KIND(name) &dlp_step_##name.kind,
#include "kinds/samplers.h"
#undef KIND
        NULL,
};

const struct kind_family dlp_samplers = { .noun = "sampler",
                                          .kinds = SAMPLERS,
                                          .numbers = FAMILY_SHORTEST,
                                          .keys = FAMILY_ALL_KEYS,
                                          .takes_any_sequence = true };
