#include "daemon/data/formats/parquet/pages/values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/base/little_endian.h"
#include "daemon/data/files/listed.h"

#define NO_VALUES      (-1) /* instead of an encoding: the page has nothing after its levels */
#define SMALL_READ     512u
#define NEAR_WINDOW    4096u
#define DICTIONARY_MAX (8u << 20) /* values, each of which takes 24 bytes */

int parquet_page_damaged(const char *what, struct why *why) {
        return why_set(why, -EBADMSG, "a page is damaged: %s; copy the file again", what);
}

/* ---- bytes that stay in the file ------------------------------------------------------------------------------- */

/* Texts are short: their lengths are read together. Pictures are long: of these only the lengths are read. */
static int window_fill(struct parquet_reader *reader, uint64_t offset, uint64_t end, struct why *why) {
        bool is_near = reader->n_window == 0 || offset < reader->window_begin + reader->n_window + NEAR_WINDOW;
        uint64_t n = is_near ? PARQUET_WINDOW_BYTES : SMALL_READ;
        int r;

        if (!reader->window) {
                reader->window = malloc(PARQUET_WINDOW_BYTES);
                if (!reader->window)
                        return why_set(why, -ENOMEM, "no memory for a page");
        }
        n = n < end - offset ? n : end - offset;
        reader->n_window = 0;
        r = listed_read(reader->fd, reader->window, n, offset, why);
        if (r < 0)
                return r;
        reader->window_begin = offset;
        reader->n_window = n;
        return 0;
}

static int window_le32(struct parquet_reader *reader, uint64_t offset, uint64_t end, uint32_t *ret_value,
                       struct why *why) {
        bool is_there = offset >= reader->window_begin && offset + 4 <= reader->window_begin + reader->n_window;
        int r = is_there ? 0 : window_fill(reader, offset, end, why);

        if (r == 0)
                *ret_value = le32(reader->window + (offset - reader->window_begin));
        return r;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* Takes n bytes of a page. */
bool parquet_take(struct parquet_page_bytes *from, uint64_t n, struct columnar_value *ret_value) {
        if (n > from->n)
                return false;
        *ret_value = (struct columnar_value){ .bytes = from->bytes, .offset = from->offset, .n_bytes = n };
        if (from->bytes)
                from->bytes += n;
        from->offset += n;
        from->n -= n;
        return true;
}

/* A length, then that many bytes. */
static int values_take_array(struct parquet_reader *reader, struct parquet_page_bytes *from,
                             struct columnar_value *ret_value, struct why *why) {
        struct columnar_value head;
        uint32_t n = 0;
        int r = 0;

        if (!parquet_take(from, 4, &head))
                return parquet_page_damaged("a value begins after its end", why);
        if (head.bytes)
                n = le32(head.bytes);
        else
                r = window_le32(reader, head.offset, from->offset + from->n, &n, why);
        if (r < 0)
                return r;
        return parquet_take(from, n, ret_value) ? 0 : parquet_page_damaged("a value is said to be longer than it", why);
}

static int take_bool(struct parquet_reader *reader, struct columnar_value *ret_value, struct why *why) {
        if (reader->values.n == 0)
                return parquet_page_damaged("it has too few values", why);
        reader->flag = *reader->values.bytes >> reader->bit & 1;
        reader->bit = (reader->bit + 1) % 8;
        if (reader->bit == 0) {
                reader->values.bytes++;
                reader->values.n--;
        }
        *ret_value = (struct columnar_value){ .bytes = &reader->flag, .n_bytes = 1 };
        return 0;
}

static int take_plain(struct parquet_reader *reader, struct columnar_value *ret_value, struct why *why) {
        switch (reader->element->physical) {
        case PARQUET_BOOLEAN:
                return take_bool(reader, ret_value, why);
        case PARQUET_BYTE_ARRAY:
                return values_take_array(reader, &reader->values, ret_value, why);
        default:
                return parquet_take(&reader->values, reader->element->width, ret_value)
                               ? 0
                               : parquet_page_damaged("it has too few values", why);
        }
}

static int take_indexed(struct parquet_reader *reader, struct columnar_value *ret_value, struct why *why) {
        uint32_t idx, width = reader->element->width;

        if (!parquet_runs_next(&reader->indices, &idx))
                return parquet_page_damaged("it has too few values", why);
        if (!reader->has_dictionary || idx >= reader->n_dictionary)
                return parquet_page_damaged("a value is not in its dictionary", why);
        if (width == 0)
                *ret_value = ((const struct columnar_value *)(const void *)reader->cells.bytes)[idx];
        else
                *ret_value = (struct columnar_value){
                        .bytes = reader->fixed.bytes ? reader->fixed.bytes + (uint64_t)idx * width : NULL,
                        .offset = reader->fixed.offset + (uint64_t)idx * width,
                        .n_bytes = width,
                };
        return 0;
}

static int values_take_run(struct parquet_reader *reader, struct columnar_value *ret_value, struct why *why) {
        uint32_t value;

        if (!parquet_runs_next(&reader->indices, &value))
                return parquet_page_damaged("it has too few values", why);
        reader->flag = (uint8_t)value;
        *ret_value = (struct columnar_value){ .bytes = &reader->flag, .n_bytes = 1 };
        return 0;
}

static int take_encoded(struct parquet_reader *reader, struct columnar_value *ret_value, struct why *why) {
        struct columnar_value value = { 0 };
        int r = parquet_encoded_next(&reader->encoded, &value.bytes, &value.n_bytes);

        if (r == -EBADMSG)
                return parquet_page_damaged("it has too few values, or a value is longer than it", why);
        if (r < 0)
                return why_errno(why, r, "a value cannot be unpacked");
        *ret_value = value;
        return 0;
}

int parquet_values_next(struct parquet_reader *reader, struct columnar_value *ret_value, struct why *why) {
        if (reader->is_levels_only) {
                *ret_value = (struct columnar_value){ 0 };
                return 0;
        }
        switch (reader->encoding) {
        case PARQUET_PLAIN:
                return take_plain(reader, ret_value, why);
        case PARQUET_PLAIN_DICTIONARY:
        case PARQUET_RLE_DICTIONARY:
                return take_indexed(reader, ret_value, why);
        case PARQUET_RLE:
                return values_take_run(reader, ret_value, why);
        case NO_VALUES:
                return parquet_page_damaged("it has too few values", why);
        default:
                return take_encoded(reader, ret_value, why);
        }
}

/* ---- pages ----------------------------------------------------------------------------------------------------- */

int parquet_values_dictionary(struct parquet_reader *reader, const struct parquet_page_header *header,
                              struct why *why) {
        struct parquet_page_bytes bytes = { NULL, reader->at + header->n_header, header->n_packed };
        uint32_t width = reader->element->width;
        int r = 0;

        if (reader->has_dictionary)
                return parquet_page_damaged("its column has two dictionaries", why);
        if (header->encoding != PARQUET_PLAIN && header->encoding != PARQUET_PLAIN_DICTIONARY)
                return parquet_page_damaged("the dictionary is not plain", why);
        if (!reader->is_in_file || reader->codec != PARQUET_UNCOMPRESSED)
                r = parquet_page_load(reader->fd, reader->at, header, reader->codec, &reader->packed,
                                      &reader->dictionary, reader->memory, &bytes, why);
        if (r < 0)
                return r;
        if (header->n_values > bytes.n / (width > 0 ? width : 4))
                return parquet_page_damaged("the dictionary is shorter than it says", why);
        if (header->n_values > DICTIONARY_MAX)
                return why_set(why, -EFBIG,
                               "has a dictionary of %" PRIu64 " values; %u are allowed: write it without a dictionary",
                               header->n_values, DICTIONARY_MAX);
        reader->fixed = bytes;
        reader->n_dictionary = header->n_values;
        reader->has_dictionary = true;
        growing_clear(&reader->cells);
        for (uint64_t i = 0; i < header->n_values && width == 0; i++) {
                struct columnar_value value;

                r = values_take_array(reader, &bytes, &value, why);
                if (r < 0)
                        return r;
                if (growing_append(&reader->cells, &value, sizeof(value)) < 0)
                        return why_set(why, -ENOMEM, "no memory for its dictionary");
        }
        return 0;
}
/* What is before the values of one of the encodings. */
int parquet_values_begin(struct parquet_reader *reader, uint64_t n_values, const struct parquet_page_bytes *bytes,
                         struct why *why) {
        struct parquet_page_bytes values = *bytes;
        struct columnar_value head;
        int r = 0;

        reader->values = values;
        reader->bit = 0;
        if (reader->encoding == PARQUET_PLAIN || reader->is_levels_only)
                return 0;
        if (reader->encoding == PARQUET_RLE && reader->element->physical == PARQUET_BOOLEAN) {
                if (!parquet_take(&values, 4, &head) || le32(head.bytes) > values.n)
                        reader->encoding = NO_VALUES; /* right if there are no values */
                else
                        parquet_runs_begin(&reader->indices, values.bytes, le32(head.bytes), 1);
                return 0;
        }
        if (parquet_encoded_is_known(reader->encoding, reader->element)) {
                if (values.n == 0)
                        reader->encoding = NO_VALUES;
                else
                        r = parquet_encoded_begin(&reader->encoded, reader->encoding, reader->element, n_values,
                                                  values.bytes, values.n);
                if (r == -ECANCELED)
                        return why_set(why, r, "indexing was cancelled");
                return r < 0 ? parquet_page_damaged("its values cannot be unpacked", why) : 0;
        }
        if (reader->encoding != PARQUET_RLE_DICTIONARY && reader->encoding != PARQUET_PLAIN_DICTIONARY)
                return why_set(why, -ENOTSUP,
                               "is encoded as %s, which is not supported for its type; stage the dataset with prepare "
                               "= \"convert\", or write it again",
                               parquet_encoding_name(reader->encoding));
        if (!parquet_take(&values, 1, &head))
                reader->encoding = NO_VALUES;
        else if (*head.bytes > 32)
                return parquet_page_damaged("its indices have more than 32 bits", why);
        else
                parquet_runs_begin(&reader->indices, values.bytes, values.n, *head.bytes);
        return 0;
}
