/* decode/flac/flac_block.h: one block of a FLAC file ("frame" in its specification, RFC 9639, section 9; a frame here is a
 * sample of each channel). Private to this folder. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/decode/flac/subframe.h"

/* Of the file: what all its blocks have in common. */
struct flac_terms {
        uint32_t n_channels;   /* 1 to 8 */
        uint32_t n_bits;       /* of a sample: 8, 16 or 24 */
        uint32_t block_frames; /* of every block but the last one */
};

enum flac_stereo {
        FLAC_EACH,
        FLAC_LEFT_SIDE,
        FLAC_SIDE_RIGHT,
        FLAC_MID_SIDE
};

struct flac_block {
        uint32_t number; /* blocks before it */
        uint32_t n_frames;
        uint32_t n_header_bytes;
        enum flac_stereo stereo;
};

/* Is there the header of a block of such a file at `bytes`? Its checksum is right, and so is what it says of the file.
 * Returns 0, or -EBADMSG. */
int flac_block_parse(const struct flac_terms *terms, const uint8_t *bytes, size_t n_bytes,
                     struct flac_block *ret_block);

/* Reads the block whose header begins at `bytes`, and checks its checksum: channel c to `samples` + c *
 * terms->block_frames and ret_subframes[c]. Returns the block's bytes, or -EBADMSG if it is damaged. */
int64_t flac_block_read(const struct flac_terms *terms, const struct flac_block *block, const uint8_t *bytes,
                        size_t n_bytes, int32_t *samples, struct flac_subframe *ret_subframes);

/* Makes the samples of its channels, after flac_predict(). Returns 0, or -EBADMSG if a sample has more bits than the
 * file says. */
int flac_block_finish(const struct flac_terms *terms, const struct flac_block *block,
                      const struct flac_subframe *subframes);
