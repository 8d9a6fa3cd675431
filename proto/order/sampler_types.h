/* order/sampler_types.h: the list of samplers, for the table in sampler.c. */
#pragma once

#include "proto/order/sampler.h"

extern const struct dlp_sampler_type dlp_sampler_sequential;
extern const struct dlp_sampler_type dlp_sampler_torch;
extern const struct dlp_sampler_type dlp_sampler_tdperm;
extern const struct dlp_sampler_type dlp_sampler_buffer;
extern const struct dlp_sampler_type dlp_sampler_blocks;
