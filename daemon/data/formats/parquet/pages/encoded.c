#include "daemon/data/formats/parquet/pages/encoded.h"

#include <errno.h>
#include <string.h>

bool parquet_encoded_is_known(int64_t encoding, const struct parquet_element *element) {
        bool is_array = element->physical == PARQUET_BYTE_ARRAY;

        switch (encoding) {
        case PARQUET_DELTA_BINARY_PACKED:
                return element->physical == PARQUET_INT32 || element->physical == PARQUET_INT64;
        case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
                return is_array;
        case PARQUET_DELTA_BYTE_ARRAY:
                return is_array || element->physical == PARQUET_FIXED;
        case PARQUET_BYTE_STREAM_SPLIT:
                return element->width > 0 && element->physical != PARQUET_INT96;
        default:
                return false;
        }
}

/* Goes through all numbers to find where they end. */
static const uint8_t *skip_numbers(struct parquet_delta numbers) {
        int64_t number;

        while (parquet_delta_next(&numbers, &number))
                ;
        return parquet_delta_end(&numbers);
}

/* The lengths come first, then all bytes. */
static bool begin_lengths(struct parquet_encoded *encoded, const uint8_t *bytes, const uint8_t *end) {
        if (!parquet_delta_begin(&encoded->numbers, bytes, (uint64_t)(end - bytes)))
                return false;
        encoded->at = skip_numbers(encoded->numbers);
        encoded->end = end;
        return encoded->at;
}

bool parquet_encoded_begin(struct parquet_encoded *encoded, int64_t encoding, const struct parquet_element *element,
                           const uint8_t *bytes, uint64_t n_bytes) {
        const uint8_t *end = bytes + n_bytes, *suffixes;

        encoded->encoding = encoding;
        encoded->width = element->width;
        growing_clear(&encoded->value);
        switch (encoding) {
        case PARQUET_DELTA_BINARY_PACKED:
                return parquet_delta_begin(&encoded->numbers, bytes, n_bytes);
        case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
                return begin_lengths(encoded, bytes, end);
        case PARQUET_DELTA_BYTE_ARRAY:
                if (!parquet_delta_begin(&encoded->prefixes, bytes, n_bytes))
                        return false;
                suffixes = skip_numbers(encoded->prefixes);
                return suffixes && begin_lengths(encoded, suffixes, end);
        default:
                encoded->at = bytes;
                encoded->idx = 0;
                encoded->n = n_bytes / element->width;
                return n_bytes % element->width == 0;
        }
}

/* A value of as many bytes as its type has, lowest first. */
static int next_number(struct parquet_encoded *encoded) {
        int64_t number;

        if (!parquet_delta_next(&encoded->numbers, &number))
                return -EBADMSG;
        growing_clear(&encoded->value);
        return growing_append(&encoded->value, &number, encoded->width);
}

/* A value from one byte of each stream. */
static int next_split(struct parquet_encoded *encoded) {
        int r = 0;

        if (encoded->idx == encoded->n)
                return -EBADMSG;
        growing_clear(&encoded->value);
        for (uint32_t i = 0; i < encoded->width && r == 0; i++)
                r = growing_append(&encoded->value, encoded->at + i * encoded->n + encoded->idx, 1);
        encoded->idx++;
        return r;
}

/* The next bytes of texts. */
static int next_piece(struct parquet_encoded *encoded, const uint8_t **ret_bytes, uint64_t *ret_n) {
        int64_t n;

        if (!parquet_delta_next(&encoded->numbers, &n) || n < 0 || n > encoded->end - encoded->at)
                return -EBADMSG;
        *ret_bytes = encoded->at;
        *ret_n = (uint64_t)n;
        encoded->at += n;
        return 0;
}

static int next_shared(struct parquet_encoded *encoded) {
        const uint8_t *bytes;
        int64_t n_shared;
        uint64_t n;
        int r;

        if (!parquet_delta_next(&encoded->prefixes, &n_shared) || n_shared < 0 ||
            (uint64_t)n_shared > encoded->value.n_bytes)
                return -EBADMSG;
        r = next_piece(encoded, &bytes, &n);
        if (r < 0)
                return r;
        if (n > PARQUET_PAGE_MAX - (uint64_t)n_shared)
                return -EFBIG;
        encoded->value.n_bytes = (size_t)n_shared;
        r = growing_append(&encoded->value, bytes, n);
        return r == 0 && encoded->width > 0 && encoded->value.n_bytes != encoded->width ? -EBADMSG : r;
}

int parquet_encoded_next(struct parquet_encoded *encoded, const uint8_t **ret_bytes, uint64_t *ret_n) {
        int r = encoded->encoding == PARQUET_DELTA_BINARY_PACKED       ? next_number(encoded)
                : encoded->encoding == PARQUET_DELTA_LENGTH_BYTE_ARRAY ? next_piece(encoded, ret_bytes, ret_n)
                : encoded->encoding == PARQUET_DELTA_BYTE_ARRAY        ? next_shared(encoded)
                                                                       : next_split(encoded);

        if (r == 0 && encoded->encoding != PARQUET_DELTA_LENGTH_BYTE_ARRAY) {
                *ret_bytes = encoded->value.bytes ? encoded->value.bytes : encoded->end;
                *ret_n = encoded->value.n_bytes;
        }
        return r;
}

void parquet_encoded_fini(struct parquet_encoded *encoded) {
        growing_fini(&encoded->value);
}
