#include "daemon/decode/flac/flac.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/decode/flac/flac_block.h"
#include "daemon/decode/flac/predict.h"

#define STREAMINFO_BYTES 34u

struct flac {
        struct flac_terms terms;
        struct sound_info info;
        const uint8_t *bytes, *end, *first; /* the file; its first block */
        const uint8_t *next;                /* the block that is decoded next */
        uint32_t next_number;               /* which one that is */
        uint32_t end_number;                /* the first block that is not wanted */
        uint32_t n_there, n_taken;          /* frames in `samples` */
        uint32_t n_room;                    /* blocks that fit into `samples` */
        int32_t *samples;                   /* [n_room][channel][block_frames] */
};

/* ---- the file's header ------------------------------------------------------------------------------------------- */

static uint64_t big_endian(const uint8_t *bytes, unsigned n) {
        uint64_t value = 0;

        for (unsigned i = 0; i < n; i++)
                value = value << 8 | bytes[i];
        return value;
}

/* The block of metadata that comes first and that every file has. */
static int read_streaminfo(struct flac *flac, const uint8_t *info) {
        uint64_t packed = big_endian(info + 10, 8); /* 20 bits rate, 3 channels - 1, 5 bits - 1, 36 frames */
        uint32_t least = (uint32_t)big_endian(info, 2), most = (uint32_t)big_endian(info + 2, 2);

        flac->info = (struct sound_info){ packed & 0xfffffffff, (uint32_t)(packed >> 44),
                                          (uint32_t)(packed >> 41 & 7) + 1 };
        flac->terms = (struct flac_terms){ flac->info.n_channels, (uint32_t)(packed >> 36 & 31) + 1, most };
        if (least != most || most < 16 || flac->info.n_frames == 0 || flac->info.n_frames > UINT32_MAX)
                return -ENOTSUP;
        if (flac->info.rate == 0 || flac->info.rate > SOUND_RATE_MAX)
                return -ENOTSUP;
        if (flac->terms.n_bits != 8 && flac->terms.n_bits != 16 && flac->terms.n_bits != 24)
                return -ENOTSUP;
        if ((uint64_t)most * flac->info.n_channels * sizeof(int32_t) > FLAC_SAMPLES_BYTES_MAX)
                return -ENOTSUP;
        return 0;
}

static int flac_read_metadata(struct flac *flac) {
        const uint8_t *at = flac->bytes + 4;

        for (bool is_first = true, is_last = false; !is_last; is_first = false) {
                uint32_t n_bytes;

                if (flac->end - at < 4)
                        return -ENOTSUP;
                is_last = at[0] >> 7;
                n_bytes = (uint32_t)big_endian(at + 1, 3);
                if ((size_t)(flac->end - at) - 4 < n_bytes)
                        return -ENOTSUP;
                if (is_first && ((at[0] & 0x7f) != 0 || n_bytes != STREAMINFO_BYTES))
                        return -ENOTSUP;
                if (is_first && read_streaminfo(flac, at + 4) < 0)
                        return -ENOTSUP;
                at += 4 + n_bytes;
        }
        flac->first = at;
        return 0;
}

/* All blocks are of one size, so the number of a block says which frames it has. */
static uint64_t first_frame_of(const struct flac *flac, uint32_t number) {
        return (uint64_t)number * flac->terms.block_frames;
}

/* Is there a block of this file at `at`? Its number is below that of the first block after the file's end. */
static bool parse_at(const struct flac *flac, const uint8_t *at, struct flac_block *ret_block) {
        uint64_t n_left;

        if (flac_block_parse(&flac->terms, at, (size_t)(flac->end - at), ret_block) < 0 ||
            first_frame_of(flac, ret_block->number) >= flac->info.n_frames)
                return false;
        n_left = flac->info.n_frames - first_frame_of(flac, ret_block->number);
        return ret_block->n_frames == (n_left < flac->terms.block_frames ? n_left : flac->terms.block_frames);
}

int flac_open(const uint8_t *bytes, size_t n_bytes, struct flac **ret_flac, struct sound_info *ret_info) {
        struct flac flac = { .bytes = bytes, .end = bytes + n_bytes };
        struct flac_block block;
        struct flac *made;

        if (n_bytes < 4 || memcmp(bytes, "fLaC", 4) != 0 || flac_read_metadata(&flac) < 0 ||
            !parse_at(&flac, flac.first, &block) || block.number != 0)
                return -ENOTSUP;
        made = malloc(sizeof(*made));
        if (!made)
                return -ENOMEM;
        *made = flac;
        *ret_flac = made;
        *ret_info = flac.info;
        return 0;
}

void flac_close(struct flac *flac) {
        if (!flac)
                return;
        free(flac->samples);
        free(flac);
}

static size_t block_samples(const struct flac *flac) {
        return (size_t)flac->terms.block_frames * flac->terms.n_channels;
}

/* For the blocks that are wanted, but not for more than a vector has lanes. */
static int flac_make_room(struct flac *flac, uint32_t n_blocks) {
        size_t n_fit = FLAC_SAMPLES_BYTES_MAX / (block_samples(flac) * sizeof(*flac->samples));

        if (n_blocks > FLAC_LANES / flac->terms.n_channels)
                n_blocks = FLAC_LANES / flac->terms.n_channels;
        if (n_blocks > n_fit)
                n_blocks = (uint32_t)n_fit;
        free(flac->samples);
        flac->samples = malloc(n_blocks * block_samples(flac) * sizeof(*flac->samples)); /* written before it is read */
        flac->n_room = n_blocks;
        return flac->samples ? 0 : -ENOMEM;
}

/* ---- finding a block --------------------------------------------------------------------------------------------- */

/* The first block that begins at or after `at` and before `end`, or NULL. What looks like a block and is none passes in
 * one of 2^30 places or so; its number then leads to a wrong place, where the search finds nothing. */
static const uint8_t *look_for_block(const struct flac *flac, const uint8_t *at, const uint8_t *end,
                                     struct flac_block *ret_block) {
        for (; at < end; at++) {
                at = memchr(at, 0xff, (size_t)(end - at));
                if (!at || parse_at(flac, at, ret_block))
                        return at;
        }
        return NULL;
}

/* Blocks have about the same size, so the place of a block can be guessed: as a rule the third guess is right. What was
 * looked through is never looked through again, so a damaged file takes as long as reading it once. Returns NULL if
 * there is no such block. */
static const uint8_t *find_block(const struct flac *flac, uint32_t number) {
        const uint8_t *low = flac->first, *high = flac->end; /* `low` is a block's beginning */
        uint32_t low_number = 0;
        uint32_t high_number = (uint32_t)((flac->info.n_frames - 1) / flac->terms.block_frames + 1);

        while (low_number < number && high - low > 1) {
                uint64_t n_bytes = (uint64_t)(high - low), n_blocks = high_number - low_number;
                const uint8_t *guess = low + 1 + (n_bytes - 1) * (number - low_number) / (n_blocks + 1);
                struct flac_block block;
                const uint8_t *found = look_for_block(flac, guess, high, &block);

                if (found && (block.number <= low_number || block.number >= high_number))
                        return NULL;
                if (found && block.number <= number) {
                        low = found;
                        low_number = block.number;
                } else {
                        high = guess;
                        high_number = found ? block.number : high_number;
                }
        }
        return low_number == number ? low : NULL;
}

int flac_seek(struct flac *flac, uint64_t first, uint64_t end) {
        uint32_t number = (uint32_t)(first / flac->terms.block_frames);

        assert(first < end && end <= flac->info.n_frames);
        flac->next = find_block(flac, number);
        if (!flac->next)
                return -EBADMSG;
        flac->next_number = number;
        flac->end_number = (uint32_t)((end - 1) / flac->terms.block_frames + 1);
        flac->n_there = 0;
        flac->n_taken = (uint32_t)(first % flac->terms.block_frames);
        return flac_make_room(flac, flac->end_number - number);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int read_next(struct flac *flac, struct flac_block *ret_block, int32_t *samples,
                     struct flac_subframe *ret_subframes) {
        int64_t n_bytes;

        if (!parse_at(flac, flac->next, ret_block) || ret_block->number != flac->next_number)
                return -EBADMSG;
        n_bytes = flac_block_read(&flac->terms, ret_block, flac->next, (size_t)(flac->end - flac->next), samples,
                                  ret_subframes);
        if (n_bytes < 0)
                return -EBADMSG;
        flac->next += n_bytes;
        flac->next_number++;
        return 0;
}

/* As many blocks as there is room for. `n_taken` frames of them are passed over. */
static int decode_next(struct flac *flac) {
        uint32_t n_channels = flac->terms.n_channels, n_left = flac->end_number - flac->next_number;
        uint32_t n_blocks = n_left < flac->n_room ? n_left : flac->n_room;
        struct flac_subframe subframes[FLAC_LANES];
        struct flac_prediction predictions[FLAC_LANES];
        struct flac_block blocks[FLAC_LANES];

        assert(n_blocks > 0);
        flac->n_there = 0;
        for (uint32_t i = 0; i < n_blocks; i++) {
                if (read_next(flac, &blocks[i], flac->samples + i * block_samples(flac), subframes + i * n_channels) <
                    0)
                        return -EBADMSG;
                flac->n_there += blocks[i].n_frames;
        }
        for (uint32_t i = 0; i < n_blocks * n_channels; i++)
                predictions[i] = subframes[i].prediction;
        flac_predict(predictions, n_blocks * n_channels);
        for (uint32_t i = 0; i < n_blocks; i++)
                if (flac_block_finish(&flac->terms, &blocks[i], subframes + i * n_channels) < 0)
                        return -EBADMSG;
        return 0;
}

/* Frames of one block, from `from` on. */
static void flac_put(const struct flac *flac, const int32_t *from, float *out, uint32_t n) {
        float scale = 1.0f / (float)(1u << (flac->terms.n_bits - 1));
        uint32_t n_channels = flac->terms.n_channels;

        for (uint32_t c = 0; c < n_channels; c++, from += flac->terms.block_frames) {
                if (n_channels == 1)
                        for (uint32_t i = 0; i < n; i++)
                                out[i] = (float)from[i] * scale;
                else
                        for (uint32_t i = 0; i < n; i++)
                                out[(size_t)i * n_channels + c] = (float)from[i] * scale;
        }
}

int flac_read(struct flac *flac, float *out, uint64_t n_frames) {
        while (n_frames > 0) {
                uint32_t n, block, in_block;

                if (flac->n_taken >= flac->n_there) {
                        flac->n_taken -= flac->n_there;
                        if (decode_next(flac) < 0)
                                return -EBADMSG;
                }
                block = flac->n_taken / flac->terms.block_frames;
                in_block = flac->n_taken % flac->terms.block_frames;
                n = flac->terms.block_frames - in_block;
                if (n > flac->n_there - flac->n_taken)
                        n = flac->n_there - flac->n_taken;
                if (n > n_frames)
                        n = (uint32_t)n_frames;
                flac_put(flac, flac->samples + block * block_samples(flac) + in_block, out, n);
                out += (size_t)n * flac->terms.n_channels;
                flac->n_taken += n;
                n_frames -= n;
        }
        return 0;
}
