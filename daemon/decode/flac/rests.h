/* decode/flac/rests.h: what a prediction left of the samples, as it is stored (RFC 9639, section 9.2.7). Private to this
 * folder. */
#pragma once

#include <stdint.h>

#include "daemon/decode/flac/flac_bits.h"

/* Reads rests[order] to rests[n_frames - 1]. Returns 0, or -EBADMSG; bits_are_over() is the caller's to ask. */
int flac_rests_read(struct flac_bits *bits, uint32_t order, uint32_t n_frames, int32_t *rests);
