#include "daemon/data/formats/parquet/pages/encoded.h"

#include <errno.h>
#include <string.h>

#include "daemon/data/index/indexing.h"

#define LOOK_VALUES (1u << 16) /* between two looks at whether the index is wanted: a millisecond */

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

/* As many as the page has values at most: a few bytes may stand for any number of them. */
static int begin_numbers(struct parquet_delta *numbers, uint64_t n_values, const uint8_t *bytes, uint64_t n_bytes) {
        return parquet_delta_begin(numbers, bytes, n_bytes) && numbers->n_left <= n_values ? 0 : -EBADMSG;
}

/* Goes through all numbers to find where they end. */
static int skip_numbers(struct parquet_delta numbers, const uint8_t **ret_end) {
        int64_t number;

        while (parquet_delta_next(&numbers, &number))
                if (numbers.n_left % LOOK_VALUES == 0 && indexing_is_over())
                        return -ECANCELED;
        *ret_end = parquet_delta_end(&numbers);
        return *ret_end ? 0 : -EBADMSG;
}

/* The lengths come first, then all bytes. */
static int begin_lengths(struct parquet_encoded *encoded, uint64_t n_values, const uint8_t *bytes, const uint8_t *end) {
        int r = begin_numbers(&encoded->numbers, n_values, bytes, (uint64_t)(end - bytes));

        encoded->end = end;
        return r < 0 ? r : skip_numbers(encoded->numbers, &encoded->at);
}

int parquet_encoded_begin(struct parquet_encoded *encoded, int64_t encoding, const struct parquet_element *element,
                          uint64_t n_values, const uint8_t *bytes, uint64_t n_bytes) {
        const uint8_t *end = bytes + n_bytes, *suffixes;
        int r;

        encoded->encoding = encoding;
        encoded->width = element->width;
        growing_clear(&encoded->value);
        switch (encoding) {
        case PARQUET_DELTA_BINARY_PACKED:
                return begin_numbers(&encoded->numbers, n_values, bytes, n_bytes);
        case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
                return begin_lengths(encoded, n_values, bytes, end);
        case PARQUET_DELTA_BYTE_ARRAY:
                r = begin_numbers(&encoded->prefixes, n_values, bytes, n_bytes);
                if (r == 0)
                        r = skip_numbers(encoded->prefixes, &suffixes);
                return r < 0 ? r : begin_lengths(encoded, n_values, suffixes, end);
        default:
                encoded->at = bytes;
                encoded->idx = 0;
                encoded->n = n_bytes / element->width;
                return n_bytes % element->width == 0 ? 0 : -EBADMSG;
        }
}

/* A value of as many bytes as its type has, lowest first. */
static int encoded_next_number(struct parquet_encoded *encoded) {
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
static int encoded_next_piece(struct parquet_encoded *encoded, const uint8_t **ret_bytes, uint64_t *ret_n) {
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
        r = encoded_next_piece(encoded, &bytes, &n);
        if (r < 0)
                return r;
        if (n > PARQUET_PAGE_MAX - (uint64_t)n_shared)
                return -EFBIG;
        encoded->value.n_bytes = (size_t)n_shared;
        r = growing_append(&encoded->value, bytes, n);
        return r == 0 && encoded->width > 0 && encoded->value.n_bytes != encoded->width ? -EBADMSG : r;
}

int parquet_encoded_next(struct parquet_encoded *encoded, const uint8_t **ret_bytes, uint64_t *ret_n) {
        int r = encoded->encoding == PARQUET_DELTA_BINARY_PACKED       ? encoded_next_number(encoded)
                : encoded->encoding == PARQUET_DELTA_LENGTH_BYTE_ARRAY ? encoded_next_piece(encoded, ret_bytes, ret_n)
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
