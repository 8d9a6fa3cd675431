/* order/steps/sampler_steps.h: the list of steps, for the table in sampler_steps.c. */
#pragma once

#include "proto/order/steps/sampler_step.h"

extern const struct dlp_step_type dlp_step_buckets;
extern const struct dlp_step_type dlp_step_class_balanced;
extern const struct dlp_step_type dlp_step_grouped;
extern const struct dlp_step_type dlp_step_max_tokens;
extern const struct dlp_step_type dlp_step_numpy_shuffle;
extern const struct dlp_step_type dlp_step_pack;
extern const struct dlp_step_type dlp_step_curriculum;
extern const struct dlp_step_type dlp_step_length_grouped;
extern const struct dlp_step_type dlp_step_mix;
extern const struct dlp_step_type dlp_step_random;
extern const struct dlp_step_type dlp_step_random_split;
extern const struct dlp_step_type dlp_step_repeat;
extern const struct dlp_step_type dlp_step_repeat_factor;
extern const struct dlp_step_type dlp_step_stratified;
extern const struct dlp_step_type dlp_step_subset;
extern const struct dlp_step_type dlp_step_weighted;
