/* decode/flac/flac.h: frames of a FLAC file from any frame on, to the same samples as libFLAC.
 *
 * Reads the files that encoders write by default, RFC 9639's streamable subset and a little more: 8, 16 or 24 bits, 1
 * to 8 channels, blocks of one size, a length in the header. Everything else, and every file that turns out to be
 * damaged, is left to libsndfile: it knows all variants, and what it says of damage is what a user can look up.
 *
 * It pays three times. A crop needs a third of the file: the block in which it begins is found by its number (FLAC
 * writes it into each header), where libFLAC decodes blocks to find their neighbours. Bits are read from memory, eight
 * bytes at a time (rests.c). And several blocks are computed at once, one in each lane of a vector (predict.h).
 *
 * A decoder belongs to one thread at a time. Nothing blocks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/decode/sound.h"

#define FLAC_SAMPLES_BYTES_MAX (1u << 20) /* of the blocks that are decoded at once */

struct flac;

/* Reads the header. `bytes` must stay valid until flac_close(). -ENOTSUP: not a file for this decoder; -ENOMEM. */
int flac_open(const uint8_t *bytes, size_t n_bytes, struct flac **ret_flac, struct sound_info *ret_info);

/* The next flac_read()s take frames from `first` to `end` - 1, which the file has (asserted, and that there is one).
 * -EBADMSG: `first` is not found; -ENOMEM. */
int flac_seek(struct flac *flac, uint64_t first, uint64_t end);

/* Writes the next `n_frames` frames, interleaved, a float a channel, each number divided by 2^(bits - 1). -EBADMSG:
 * damaged, or fewer frames are there. */
int flac_read(struct flac *flac, float *out, uint64_t n_frames);

/* Takes NULL. */
void flac_close(struct flac *flac);
