/* decode/flac/subframe.h: the samples of one channel of a block (RFC 9639, section 9.2). Private to this folder. */
#pragma once

#include <stdint.h>

#include "daemon/decode/flac/flac_bits.h"
#include "daemon/decode/flac/predict.h"

struct flac_subframe {
        struct flac_prediction prediction;
        uint32_t n_wasted; /* lowest bits of every sample, which are 0 and not stored */
};

/* Reads n_frames samples of n_bits bits (at most 25) to `samples`. They are complete after flac_predict() and
 * flac_subframe_finish(). Returns 0, or -EBADMSG; bits_are_over() is the caller's to ask. */
int flac_subframe_read(struct flac_bits *bits, uint32_t n_bits, uint32_t n_frames, int32_t *samples,
                       struct flac_subframe *ret_subframe);

void flac_subframe_finish(const struct flac_subframe *subframe);
