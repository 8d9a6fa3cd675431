#include "daemon/data/formats/parquet/pages/delta.h"

#include <stddef.h>

#define BLOCK_MAX (1u << 20) /* values; writers have 128 or 256 */

static bool delta_take_varint(struct parquet_delta *delta, uint64_t *ret_value) {
        uint64_t value = 0;

        for (unsigned shift = 0; shift < 64 && delta->at < delta->end; shift += 7) {
                uint8_t byte = *delta->at++;

                value |= (uint64_t)(byte & 0x7f) << shift;
                if (byte & 0x80)
                        continue;
                *ret_value = value;
                return shift < 63 || byte <= 1;
        }
        return false;
}

static bool delta_take_zigzag(struct parquet_delta *delta, uint64_t *ret_value) {
        uint64_t value;

        if (!delta_take_varint(delta, &value))
                return false;
        *ret_value = value >> 1 ^ -(value & 1);
        return true;
}

bool parquet_delta_begin(struct parquet_delta *delta, const uint8_t *bytes, uint64_t n_bytes) {
        uint64_t n_block, n_parts, n, first;

        *delta = (struct parquet_delta){ .at = bytes, .end = bytes + n_bytes };
        if (!delta_take_varint(delta, &n_block) || !delta_take_varint(delta, &n_parts) ||
            !delta_take_varint(delta, &n) || !delta_take_zigzag(delta, &first))
                return false;
        if (n_parts == 0 || n_block == 0 || n_block > BLOCK_MAX || n_block % n_parts != 0 || n_block / n_parts % 8 != 0)
                return false;
        delta->n_parts = delta->idx_part = (uint32_t)n_parts;
        delta->n_part = (uint32_t)(n_block / n_parts);
        delta->n_left = n;
        delta->value = first;
        delta->is_first = true;
        return true;
}

/* Bytes of the current part. */
static uint64_t part_bytes(const struct parquet_delta *delta) {
        return (uint64_t)delta->widths[delta->idx_part] * delta->n_part / 8;
}

static bool delta_begin_part(struct parquet_delta *delta) {
        if (delta->idx_part < delta->n_parts) {
                delta->at += part_bytes(delta);
                delta->idx_part++;
        }
        delta->idx_in_part = 0;
        if (delta->idx_part == delta->n_parts) {
                if (!delta_take_zigzag(delta, &delta->least) || (uint64_t)(delta->end - delta->at) < delta->n_parts)
                        return false;
                delta->widths = delta->at;
                delta->at += delta->n_parts;
                delta->idx_part = 0;
        }
        return delta->widths[delta->idx_part] <= 64 && part_bytes(delta) <= (uint64_t)(delta->end - delta->at);
}

/* A number of up to 64 bits, which may begin within a byte. */
static uint64_t delta_unpack(const uint8_t *bytes, uint64_t bit, uint32_t width) {
        uint64_t value = 0;

        for (uint32_t n = 0; n < width;) {
                uint32_t shift = (uint32_t)(bit % 8), n_here = 8 - shift < width - n ? 8 - shift : width - n;

                value |= (uint64_t)(bytes[bit / 8] >> shift & ((1u << n_here) - 1)) << n;
                bit += n_here;
                n += n_here;
        }
        return value;
}

/* Differences wrap around, as the arithmetic of the writer did. */
bool parquet_delta_next(struct parquet_delta *delta, int64_t *ret_value) {
        if (delta->n_left == 0)
                return false;
        if (!delta->is_first) {
                uint32_t width;

                if (delta->idx_part == delta->n_parts || delta->idx_in_part == delta->n_part)
                        if (!delta_begin_part(delta))
                                return false;
                width = delta->widths[delta->idx_part];
                delta->value += delta->least + delta_unpack(delta->at, (uint64_t)delta->idx_in_part * width, width);
                delta->idx_in_part++;
        }
        delta->is_first = false;
        delta->n_left--;
        *ret_value = (int64_t)delta->value;
        return true;
}

const uint8_t *parquet_delta_end(const struct parquet_delta *delta) {
        if (delta->n_left > 0)
                return NULL;
        return delta->idx_part < delta->n_parts ? delta->at + part_bytes(delta) : delta->at;
}
