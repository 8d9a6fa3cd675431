#include "daemon/decode/flac/flac_block.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/decode/flac/crc.h"
#include "daemon/decode/flac/flac_bits.h"

#define HEADER_BYTES_MAX 16u /* with the checksum; what must be there to look for one */
#define CRC16_BYTES      2u

/* The number of a block is written as UTF-8 writes a character, of up to 6 bytes. Returns its bytes, or 0. */
static uint32_t flac_block_read_number(const uint8_t *bytes, uint32_t *ret_number) {
        uint32_t n_bytes = bytes[0] < 0x80 ? 1 : (uint32_t)__builtin_clz(~((uint32_t)bytes[0] << 24));
        uint32_t number;

        if (bytes[0] < 0x80) {
                *ret_number = bytes[0];
                return 1;
        }
        if (n_bytes < 2 || n_bytes > 6)
                return 0;
        number = bytes[0] & (0x7fu >> n_bytes);
        for (uint32_t i = 1; i < n_bytes; i++) {
                if ((bytes[i] & 0xc0) != 0x80)
                        return 0;
                number = number << 6 | (bytes[i] & 0x3f);
        }
        *ret_number = number;
        return n_bytes;
}

/* The size of a block by its code; codes 6 and 7 are followed by it. Returns the bytes that follow, or -1. */
static int flac_block_read_size(unsigned code, const uint8_t *bytes, uint32_t *ret_frames) {
        if (code == 0)
                return -1;
        if (code == 1)
                *ret_frames = 192;
        else if (code < 6)
                *ret_frames = 576u << (code - 2);
        else if (code == 6)
                *ret_frames = bytes[0] + 1u;
        else if (code == 7)
                *ret_frames = (uint32_t)(bytes[0] << 8 | bytes[1]) + 1;
        else
                *ret_frames = 256u << (code - 8);
        return code == 6 ? 1 : code == 7 ? 2 : 0;
}

/* Do the channels and bits that the header's fourth byte names fit the file? */
static bool is_of_file(const struct flac_terms *terms, uint8_t byte, enum flac_stereo *ret_stereo) {
        static const uint8_t BITS[8] = { 0, 8, 12, 0, 16, 20, 24, 32 };
        unsigned channels = byte >> 4, bits = byte >> 1 & 7;

        if ((byte & 1) != 0 || bits == 3 || (bits != 0 && BITS[bits] != terms->n_bits))
                return false;
        *ret_stereo = channels < 8 ? FLAC_EACH : (enum flac_stereo)(channels - 7);
        return channels < 8 ? channels + 1 == terms->n_channels : channels <= 10 && terms->n_channels == 2;
}

/* At least HEADER_BYTES_MAX bytes can be read. */
static int parse(const struct flac_terms *terms, const uint8_t *bytes, struct flac_block *ret_block) {
        uint32_t at = 4, n;
        unsigned rate;
        int n_size;

        if (bytes[0] != 0xff || bytes[1] != 0xf8 || !is_of_file(terms, bytes[3], &ret_block->stereo))
                return -EBADMSG;
        rate = bytes[2] & 15;
        n = flac_block_read_number(bytes + at, &ret_block->number);
        if (n == 0 || rate == 15)
                return -EBADMSG;
        at += n;
        n_size = flac_block_read_size(bytes[2] >> 4, bytes + at, &ret_block->n_frames);
        if (n_size < 0 || ret_block->n_frames > terms->block_frames)
                return -EBADMSG;
        at += (uint32_t)n_size + (rate == 12 ? 1 : rate == 13 || rate == 14 ? 2 : 0);
        if (flac_crc8(bytes, at) != bytes[at])
                return -EBADMSG;
        ret_block->n_header_bytes = at + 1;
        return 0;
}

int flac_block_parse(const struct flac_terms *terms, const uint8_t *bytes, size_t n_bytes,
                     struct flac_block *ret_block) {
        uint8_t last[HEADER_BYTES_MAX] = { 0 };
        int r;

        if (n_bytes >= HEADER_BYTES_MAX)
                return parse(terms, bytes, ret_block);
        memcpy(last, bytes, n_bytes); /* a short block at the file's end */
        r = parse(terms, last, ret_block);
        return r == 0 && ret_block->n_header_bytes > n_bytes ? -EBADMSG : r;
}

/* The difference of two channels takes a bit more than they do. */
static uint32_t flac_block_bits_of(const struct flac_terms *terms, const struct flac_block *block, uint32_t channel) {
        bool is_side = channel == 0 ? block->stereo == FLAC_SIDE_RIGHT
                                    : block->stereo == FLAC_LEFT_SIDE || block->stereo == FLAC_MID_SIDE;

        return terms->n_bits + is_side;
}

/* Sums wrap: what does not fit is found by are_in_range(). */
static void undo_stereo(enum flac_stereo stereo, uint32_t n, int32_t *first, int32_t *second) {
        for (uint32_t i = 0; i < n; i++) {
                uint32_t a = (uint32_t)first[i], b = (uint32_t)second[i];

                if (stereo == FLAC_LEFT_SIDE) {
                        second[i] = (int32_t)(a - b);
                } else if (stereo == FLAC_SIDE_RIGHT) {
                        first[i] = (int32_t)(a + b);
                } else {
                        a = a << 1 | (b & 1);
                        first[i] = (int32_t)(a + b) >> 1;
                        second[i] = (int32_t)(a - b) >> 1;
                }
        }
}

static bool are_in_range(const int32_t *samples, uint32_t n, uint32_t n_bits) {
        int32_t beyond = 0;

        for (uint32_t i = 0; i < n; i++)
                beyond |= samples[i] ^ samples[i] >> 31; /* the sign, then the bits that differ from it */
        return beyond >> (n_bits - 1) == 0;
}

int64_t flac_block_read(const struct flac_terms *terms, const struct flac_block *block, const uint8_t *bytes,
                        size_t n_bytes, int32_t *samples, struct flac_subframe *ret_subframes) {
        const uint8_t *end;
        struct flac_bits bits;
        size_t n_used;

        bits_init(&bits, bytes + block->n_header_bytes, bytes + n_bytes);
        for (uint32_t c = 0; c < terms->n_channels; c++)
                if (flac_subframe_read(&bits, flac_block_bits_of(terms, block, c), block->n_frames,
                                       samples + (size_t)c * terms->block_frames, &ret_subframes[c]) < 0)
                        return -EBADMSG;
        if (bits_are_over(&bits))
                return -EBADMSG;
        end = bits_byte(&bits);
        n_used = (size_t)(end - bytes);
        if (n_bytes - n_used < CRC16_BYTES || flac_crc16(bytes, n_used) != (end[0] << 8 | end[1]))
                return -EBADMSG;
        return (int64_t)(n_used + CRC16_BYTES);
}

int flac_block_finish(const struct flac_terms *terms, const struct flac_block *block,
                      const struct flac_subframe *subframes) {
        for (uint32_t c = 0; c < terms->n_channels; c++)
                flac_subframe_finish(&subframes[c]);
        if (block->stereo != FLAC_EACH)
                undo_stereo(block->stereo, block->n_frames, subframes[0].prediction.samples,
                            subframes[1].prediction.samples);
        for (uint32_t c = 0; c < terms->n_channels; c++)
                if (!are_in_range(subframes[c].prediction.samples, block->n_frames, terms->n_bits))
                        return -EBADMSG;
        return 0;
}
