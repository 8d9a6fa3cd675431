#include "daemon/data/formats/parquet/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "proto/base/cleanup.h"
#include "proto/layout.h"

#define END            1    /* positive outcome: the chunk has no more entries */
#define SLACK          100u /* bytes that old writers forgot to count in a chunk: the header of the dictionary */
#define NO_VALUES      (-1) /* instead of an encoding: the page has nothing after its levels */
#define SMALL_READ     512u
#define NEAR_WINDOW    4096u
#define DICTIONARY_MAX (8u << 20)   /* values, each of which takes 24 bytes */
#define LIST_MAX       (256u << 20) /* bytes of the elements of a row: a few bytes may stand for any number of them */

static int damaged(const char *what, struct why *why) {
        return why_set(why, -EBADMSG, "a page is damaged: %s; copy the file again", what);
}

int parquet_reader_begin(struct parquet_reader *reader, const struct parquet_footer *footer, uint32_t idx_element,
                         const struct parquet_chunk *chunk, struct why *why) {
        const struct parquet_element *element = parquet_element(&footer->schema, idx_element);
        uint64_t n_more = footer->end - chunk->offset - chunk->n_bytes;
        int r;

        if (chunk->is_encrypted)
                return why_set(why, -ENOTSUP,
                               "is encrypted, and keys are not supported; write it again without encryption");
        if (chunk->is_elsewhere)
                return why_set(why, -ENOTSUP, "lies in another file; write the file again, with all of its columns");
        r = parquet_codec_check(chunk->codec, why);
        if (r < 0)
                return r;
        reader->element = element;
        for (uint32_t i = 1; i <= element->n_repeated && i <= PARQUET_LEVELS_MAX; i++)
                reader->levels[i] = parquet_schema_level(&footer->schema, idx_element, i);
        reader->at = chunk->offset;
        reader->end = chunk->offset + chunk->n_bytes + (n_more < SLACK ? n_more : SLACK);
        reader->n_left = chunk->n_values;
        reader->codec = chunk->codec;
        reader->n_page = 0;
        reader->has_entry = reader->has_dictionary = false;
        reader->n_window = 0; /* perhaps of another file */
        return 0;
}

void parquet_reader_fini(struct parquet_reader *reader) {
        parquet_buffer_fini(&reader->packed, reader->memory);
        parquet_buffer_fini(&reader->plain, reader->memory);
        parquet_buffer_fini(&reader->dictionary, reader->memory);
        parquet_buffer_fini(&reader->level_bytes[0], reader->memory);
        parquet_buffer_fini(&reader->level_bytes[1], reader->memory);
        growing_fini(&reader->cells);
        parquet_encoded_fini(&reader->encoded);
        free(reader->window);
        reader->window = NULL;
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
        r = parquet_read_or_say(reader->fd, reader->window, n, offset, why);
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
static bool take(struct parquet_page_bytes *from, uint64_t n, struct parquet_value *ret_value) {
        if (n > from->n)
                return false;
        *ret_value = (struct parquet_value){ .bytes = from->bytes, .offset = from->offset, .n_bytes = n };
        if (from->bytes)
                from->bytes += n;
        from->offset += n;
        from->n -= n;
        return true;
}

/* A length, then that many bytes. */
static int take_array(struct parquet_reader *reader, struct parquet_page_bytes *from, struct parquet_value *ret_value,
                      struct why *why) {
        struct parquet_value head;
        uint32_t n;
        int r = 0;

        if (!take(from, 4, &head))
                return damaged("a value begins after its end", why);
        if (head.bytes)
                n = le32(head.bytes);
        else
                r = window_le32(reader, head.offset, from->offset + from->n, &n, why);
        if (r < 0)
                return r;
        return take(from, n, ret_value) ? 0 : damaged("a value is said to be longer than it", why);
}

static int take_bool(struct parquet_reader *reader, struct parquet_value *ret_value, struct why *why) {
        if (reader->values.n == 0)
                return damaged("it has too few values", why);
        reader->flag = *reader->values.bytes >> reader->bit & 1;
        reader->bit = (reader->bit + 1) % 8;
        if (reader->bit == 0) {
                reader->values.bytes++;
                reader->values.n--;
        }
        *ret_value = (struct parquet_value){ .bytes = &reader->flag, .n_bytes = 1 };
        return 0;
}

static int take_plain(struct parquet_reader *reader, struct parquet_value *ret_value, struct why *why) {
        switch (reader->element->physical) {
        case PARQUET_BOOLEAN:
                return take_bool(reader, ret_value, why);
        case PARQUET_BYTE_ARRAY:
                return take_array(reader, &reader->values, ret_value, why);
        default:
                return take(&reader->values, reader->element->width, ret_value) ? 0
                                                                                : damaged("it has too few values", why);
        }
}

static int take_indexed(struct parquet_reader *reader, struct parquet_value *ret_value, struct why *why) {
        uint32_t idx, width = reader->element->width;

        if (!parquet_runs_next(&reader->indices, &idx))
                return damaged("it has too few values", why);
        if (!reader->has_dictionary || idx >= reader->n_dictionary)
                return damaged("a value is not in its dictionary", why);
        if (width == 0)
                *ret_value = ((const struct parquet_value *)(const void *)reader->cells.bytes)[idx];
        else
                *ret_value = (struct parquet_value){
                        .bytes = reader->fixed.bytes ? reader->fixed.bytes + (uint64_t)idx * width : NULL,
                        .offset = reader->fixed.offset + (uint64_t)idx * width,
                        .n_bytes = width,
                };
        return 0;
}

static int take_run(struct parquet_reader *reader, struct parquet_value *ret_value, struct why *why) {
        uint32_t value;

        if (!parquet_runs_next(&reader->indices, &value))
                return damaged("it has too few values", why);
        reader->flag = (uint8_t)value;
        *ret_value = (struct parquet_value){ .bytes = &reader->flag, .n_bytes = 1 };
        return 0;
}

static int take_encoded(struct parquet_reader *reader, struct parquet_value *ret_value, struct why *why) {
        struct parquet_value value = { 0 };
        int r = parquet_encoded_next(&reader->encoded, &value.bytes, &value.n_bytes);

        if (r == -EBADMSG)
                return damaged("it has too few values, or a value is longer than it", why);
        if (r < 0)
                return why_errno(why, r, "a value cannot be unpacked");
        *ret_value = value;
        return 0;
}

static int take_value(struct parquet_reader *reader, struct parquet_value *ret_value, struct why *why) {
        if (reader->is_levels_only) {
                *ret_value = (struct parquet_value){ 0 };
                return 0;
        }
        switch (reader->encoding) {
        case PARQUET_PLAIN:
                return take_plain(reader, ret_value, why);
        case PARQUET_PLAIN_DICTIONARY:
        case PARQUET_RLE_DICTIONARY:
                return take_indexed(reader, ret_value, why);
        case PARQUET_RLE:
                return take_run(reader, ret_value, why);
        case NO_VALUES:
                return damaged("it has too few values", why);
        default:
                return take_encoded(reader, ret_value, why);
        }
}

/* ---- pages ----------------------------------------------------------------------------------------------------- */

static int read_dictionary(struct parquet_reader *reader, const struct parquet_page_header *header, struct why *why) {
        struct parquet_page_bytes bytes = { NULL, reader->at + header->n_header, header->n_packed };
        uint32_t width = reader->element->width;
        int r = 0;

        if (reader->has_dictionary)
                return damaged("its column has two dictionaries", why);
        if (header->encoding != PARQUET_PLAIN && header->encoding != PARQUET_PLAIN_DICTIONARY)
                return damaged("the dictionary is not plain", why);
        if (!reader->is_in_file || reader->codec != PARQUET_UNCOMPRESSED)
                r = parquet_page_load(reader->fd, reader->at, header, reader->codec, &reader->packed,
                                      &reader->dictionary, reader->memory, &bytes, why);
        if (r < 0)
                return r;
        if (header->n_values > bytes.n / (width > 0 ? width : 4))
                return damaged("the dictionary is shorter than it says", why);
        if (header->n_values > DICTIONARY_MAX)
                return why_set(why, -EFBIG,
                               "has a dictionary of %" PRIu64 " values; %u are allowed: write it without a dictionary",
                               header->n_values, DICTIONARY_MAX);
        reader->fixed = bytes;
        reader->n_dictionary = header->n_values;
        reader->has_dictionary = true;
        growing_clear(&reader->cells);
        for (uint64_t i = 0; i < header->n_values && width == 0; i++) {
                struct parquet_value value;

                r = take_array(reader, &bytes, &value, why);
                if (r < 0)
                        return r;
                if (growing_append(&reader->cells, &value, sizeof(value)) < 0)
                        return why_set(why, -ENOMEM, "no memory for its dictionary");
        }
        return 0;
}

/* Takes the bytes of one kind of levels, which have to be in memory. */
static int take_levels(struct parquet_reader *reader, struct parquet_page_bytes *bytes, uint64_t n, unsigned kind,
                       struct parquet_runs *runs, uint32_t most, struct why *why) {
        struct parquet_value levels;
        int r;

        if (!take(bytes, n, &levels))
                return damaged("its levels are longer than it", why);
        if (!levels.bytes) {
                r = parquet_buffer_reserve(&reader->level_bytes[kind], n, reader->memory, why);
                if (r == 0)
                        r = parquet_read_or_say(reader->fd, reader->level_bytes[kind].bytes, n, levels.offset, why);
                if (r < 0)
                        return r;
                levels.bytes = reader->level_bytes[kind].bytes;
        }
        parquet_runs_begin(runs, levels.bytes, n, parquet_runs_width(most));
        return 0;
}

/* In PARQUET_PAGE_DATA each kind of levels follows its length. */
static int take_counted_levels(struct parquet_reader *reader, struct parquet_page_bytes *bytes,
                               const struct parquet_page_header *header, unsigned kind, struct parquet_runs *runs,
                               uint32_t most, struct why *why) {
        struct parquet_value head;
        uint8_t read[4];
        int r = 0;

        if (most == 0)
                return 0;
        if (header->level_encodings[kind] != PARQUET_RLE)
                return why_set(why, -ENOTSUP,
                               "has levels encoded as %s, which is not supported; stage the dataset with prepare = "
                               "\"convert\", or write it again",
                               parquet_encoding_name(header->level_encodings[kind]));
        if (!take(bytes, 4, &head))
                return damaged("its levels are longer than it", why);
        if (!head.bytes)
                r = parquet_read_or_say(reader->fd, read, sizeof(read), head.offset, why);
        return r == 0 ? take_levels(reader, bytes, le32(head.bytes ? head.bytes : read), kind, runs, most, why) : r;
}

static int begin_levels(struct parquet_reader *reader, struct parquet_page_bytes *bytes,
                        const struct parquet_page_header *header, struct why *why) {
        const struct parquet_element *element = reader->element;
        int r;

        if (header->kind == PARQUET_PAGE_DATA) {
                r = take_counted_levels(reader, bytes, header, 0, &reader->repeated, element->n_repeated, why);
                if (r == 0)
                        r = take_counted_levels(reader, bytes, header, 1, &reader->defined, element->n_defined, why);
                return r;
        }
        r = take_levels(reader, bytes, header->n_repeated, 0, &reader->repeated, element->n_repeated, why);
        if (r == 0)
                r = take_levels(reader, bytes, header->n_defined, 1, &reader->defined, element->n_defined, why);
        return r;
}

/* What is before the values of one of the encodings. */
static int begin_values(struct parquet_reader *reader, const struct parquet_page_bytes *bytes, struct why *why) {
        struct parquet_page_bytes values = *bytes;
        struct parquet_value head;

        reader->values = values;
        reader->bit = 0;
        if (reader->encoding == PARQUET_PLAIN || reader->is_levels_only)
                return 0;
        if (reader->encoding == PARQUET_RLE && reader->element->physical == PARQUET_BOOLEAN) {
                if (!take(&values, 4, &head) || le32(head.bytes) > values.n)
                        reader->encoding = NO_VALUES; /* right if there are no values */
                else
                        parquet_runs_begin(&reader->indices, values.bytes, le32(head.bytes), 1);
                return 0;
        }
        if (parquet_encoded_is_known(reader->encoding, reader->element)) {
                if (values.n == 0)
                        reader->encoding = NO_VALUES;
                else if (!parquet_encoded_begin(&reader->encoded, reader->encoding, reader->element, values.bytes,
                                                values.n))
                        return damaged("its values cannot be unpacked", why);
                return 0;
        }
        if (reader->encoding != PARQUET_RLE_DICTIONARY && reader->encoding != PARQUET_PLAIN_DICTIONARY)
                return why_set(why, -ENOTSUP,
                               "is encoded as %s, which is not supported for its type; stage the dataset with prepare "
                               "= \"convert\", or write it again",
                               parquet_encoding_name(reader->encoding));
        if (!take(&values, 1, &head))
                reader->encoding = NO_VALUES;
        else if (*head.bytes > 32)
                return damaged("its indices have more than 32 bits", why);
        else
                parquet_runs_begin(&reader->indices, values.bytes, values.n, *head.bytes);
        return 0;
}

/* Values that are plain may stay in the file; indices have to be read. */
static bool stays_in_file(const struct parquet_reader *reader, const struct parquet_page_header *header) {
        return reader->codec == PARQUET_UNCOMPRESSED && header->n_packed == header->n_plain &&
               (reader->is_levels_only || (reader->is_in_file && header->encoding == PARQUET_PLAIN));
}

static int begin_page(struct parquet_reader *reader, const struct parquet_page_header *header, struct why *why) {
        struct parquet_page_bytes bytes = { NULL, reader->at + header->n_header, header->n_packed };
        int r = 0;

        if (header->n_values > reader->n_left)
                return damaged("it has more values than its column", why);
        if (!stays_in_file(reader, header))
                r = parquet_page_load(reader->fd, reader->at, header, reader->codec, &reader->packed, &reader->plain,
                                      reader->memory, &bytes, why);
        reader->encoding = header->encoding;
        if (r == 0)
                r = begin_levels(reader, &bytes, header, why);
        if (r == 0)
                r = begin_values(reader, &bytes, why);
        if (r == 0)
                reader->n_page = header->n_values;
        return r;
}

static int next_page(struct parquet_reader *reader, struct why *why) {
        struct parquet_page_header header = { 0 };
        int r = parquet_page_header_read(reader->fd, reader->at, reader->end, &header, why);

        if (r < 0)
                return r;
        switch (header.kind) {
        case PARQUET_PAGE_DATA:
        case PARQUET_PAGE_DATA_2:
                r = begin_page(reader, &header, why);
                break;
        case PARQUET_PAGE_DICTIONARY:
                r = reader->is_levels_only ? 0 : read_dictionary(reader, &header, why);
                break;
        default: /* indices, and what is not known yet */
                break;
        }
        reader->at += header.n_header + header.n_packed;
        return r;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

/* Looks at the next entry. */
static int look(struct parquet_reader *reader, struct why *why) {
        const struct parquet_element *element = reader->element;
        int r;

        if (reader->has_entry)
                return 0;
        while (reader->n_page == 0) {
                if (reader->n_left == 0)
                        return END;
                r = next_page(reader, why);
                if (r < 0)
                        return r;
        }
        reader->n_repeated_now = 0;
        reader->n_defined_now = element->n_defined;
        if ((element->n_repeated > 0 && !parquet_runs_next(&reader->repeated, &reader->n_repeated_now)) ||
            (element->n_defined > 0 && !parquet_runs_next(&reader->defined, &reader->n_defined_now)) ||
            reader->n_repeated_now > element->n_repeated || reader->n_defined_now > element->n_defined)
                return damaged("its levels are wrong", why);
        reader->n_page--;
        reader->n_left--;
        reader->has_entry = true;
        return 0;
}

static int look_for_row(struct parquet_reader *reader, struct why *why) {
        int r = look(reader, why);

        if (r == END)
                return why_set(why, -EBADMSG, "has fewer rows than its row group; write the file again");
        if (r == 0 && reader->n_repeated_now > 0)
                return damaged("a row begins within a list", why);
        return r;
}

int parquet_reader_next(struct parquet_reader *reader, struct parquet_value *ret_value, struct why *why) {
        int r = look_for_row(reader, why);

        if (r < 0)
                return r;
        reader->has_entry = false;
        if (reader->n_defined_now == reader->element->n_defined)
                return take_value(reader, ret_value, why);
        *ret_value = (struct parquet_value){ .offset = PARQUET_NULL };
        return 0;
}

int parquet_reader_end(const struct parquet_reader *reader, struct why *why) {
        if (reader->n_left == 0 && reader->n_page == 0 && !reader->has_entry)
                return 0;
        return why_set(why, -EBADMSG, "has more rows than its row group; write the file again");
}

/* ---- lists ----------------------------------------------------------------------------------------------------- */

static int append_number(struct parquet_reader *reader, struct growing *elements, struct why *why) {
        struct parquet_value value;
        uint8_t number[8];
        int r = take_value(reader, &value, why);

        if (r < 0)
                return r;
        if (reader->is_levels_only)
                return 0;
        if (!parquet_number(reader->element, value.bytes, number))
                return why_set(why, -EBADMSG, "has a number that does not fit %s; write the file again",
                               dlp_dtype_name(reader->element->dtype));
        if (elements->n_bytes > LIST_MAX)
                return why_set(why, -EFBIG, "has a list of more than %u MiB; split it", LIST_MAX >> 20);
        r = growing_append(elements, number, dlp_dtype_bytes(reader->element->dtype));
        return r < 0 ? why_set(why, r, "no memory for a list") : 0;
}

/* The lists below `level` end here: those of one level have all the same length. */
static int close_lists(const struct parquet_reader *reader, struct parquet_widths *widths, const uint64_t *counts,
                       uint32_t level, struct why *why) {
        for (uint32_t k = level + 1; k <= reader->element->n_repeated; k++) {
                if (widths->n[k] == PARQUET_WIDTH_NONE)
                        widths->n[k] = counts[k];
                if (counts[k] != widths->n[k])
                        return why_set(why, -ENOTSUP,
                                       "has inner lists of %" PRIu64 " and of %" PRIu64
                                       " elements: only the outer lists may differ in length",
                                       widths->n[k], counts[k]);
        }
        return 0;
}

/* An entry that is a part of a list. */
static int take_entry(struct parquet_reader *reader, uint64_t *counts, struct growing *elements, struct why *why) {
        const struct parquet_element *element = reader->element;

        reader->has_entry = false;
        if (reader->n_defined_now < element->n_defined)
                return why_set(why, -ENOTSUP,
                               "has lists with missing or empty elements; an array of numbers must have them all");
        counts[reader->n_repeated_now > 0 ? reader->n_repeated_now : 1]++;
        for (uint32_t k = (reader->n_repeated_now > 0 ? reader->n_repeated_now : 1) + 1; k <= element->n_repeated; k++)
                counts[k] = 1;
        return append_number(reader, elements, why);
}

int parquet_reader_next_list(struct parquet_reader *reader, struct parquet_widths *widths, struct growing *elements,
                             bool *ret_is_null, struct why *why) {
        uint64_t counts[PARQUET_LEVELS_MAX + 1] = { 0 };
        int r = look_for_row(reader, why);

        if (r < 0)
                return r;
        *ret_is_null = reader->n_defined_now + 1 < reader->levels[1];
        if (reader->n_defined_now < reader->levels[1]) { /* no list, or one without elements */
                reader->has_entry = false;
                r = look(reader, why);
                return r == 0 && reader->n_repeated_now > 0 ? damaged("an empty list has elements", why)
                                                            : (r < 0 ? r : 0);
        }
        do {
                if (reader->n_repeated_now > 0)
                        r = close_lists(reader, widths, counts, reader->n_repeated_now, why);
                if (r == 0)
                        r = take_entry(reader, counts, elements, why);
                if (r == 0)
                        r = look(reader, why);
        } while (r == 0 && reader->n_repeated_now > 0);
        return r < 0 ? r : close_lists(reader, widths, counts, 1, why);
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

bool parquet_number(const struct parquet_element *element, const uint8_t *bytes, void *ret_number) {
        size_t n = (size_t)dlp_dtype_bytes(element->dtype);
        int32_t wide;

        memcpy(ret_number, bytes, n);
        if (element->physical != PARQUET_INT32 || n == 4)
                return true;
        wide = (int32_t)le32(bytes);
        switch (element->dtype) {
        case DLP_DTYPE_INT8:
                return wide >= INT8_MIN && wide <= INT8_MAX;
        case DLP_DTYPE_INT16:
                return wide >= INT16_MIN && wide <= INT16_MAX;
        case DLP_DTYPE_UINT8:
                return wide >= 0 && wide <= UINT8_MAX;
        default:
                return wide >= 0 && wide <= UINT16_MAX;
        }
}
