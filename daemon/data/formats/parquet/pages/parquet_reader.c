#include "daemon/data/formats/parquet/pages/parquet_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/data/files/listed.h"
#include "daemon/data/formats/parquet/pages/values.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"
#include "proto/layout.h"

#define END          1            /* positive outcome: the chunk has no more entries */
#define SLACK        100u         /* bytes that old writers forgot to count in a chunk: the header of the dictionary */
#define LIST_MAX     (256u << 20) /* bytes of the elements of a row: a few bytes may stand for any number of them */
#define LOOK_ENTRIES (1u << 16)   /* between two looks at whether the index is wanted: some milliseconds */

int parquet_chunk_check(const struct parquet_chunk *chunk, struct why *why) {
        if (chunk->is_encrypted)
                return why_set(why, -ENOTSUP,
                               "is encrypted, and keys are not supported; write it again without encryption");
        if (chunk->is_elsewhere)
                return why_set(why, -ENOTSUP, "lies in another file; write the file again, with all of its columns");
        return parquet_codec_check(chunk->codec, why);
}

int parquet_reader_begin(struct parquet_reader *reader, const struct parquet_footer *footer, uint32_t idx_element,
                         const struct parquet_chunk *chunk, struct why *why) {
        const struct parquet_element *element = parquet_element(&footer->schema, idx_element);
        uint64_t n_more = footer->end - chunk->offset - chunk->n_bytes;
        int r;

        r = parquet_chunk_check(chunk, why);
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
        reader->is_missing = reader->has_entry = reader->has_dictionary = false;
        reader->n_window = 0; /* perhaps of another file */
        return 0;
}

void parquet_reader_begin_missing(struct parquet_reader *reader) {
        reader->is_missing = true;
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

/* ---- pages ----------------------------------------------------------------------------------------------------- */

/* Takes the bytes of one kind of levels, which have to be in memory. */
static int take_levels(struct parquet_reader *reader, struct parquet_page_bytes *bytes, uint64_t n, unsigned kind,
                       struct parquet_runs *runs, uint32_t most, struct why *why) {
        struct columnar_value levels;
        int r;

        if (!parquet_take(bytes, n, &levels))
                return parquet_page_damaged("its levels are longer than it", why);
        if (!levels.bytes) {
                r = parquet_buffer_reserve(&reader->level_bytes[kind], n, reader->memory, why);
                if (r == 0)
                        r = listed_read(reader->fd, reader->level_bytes[kind].bytes, n, levels.offset, why);
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
        struct columnar_value head;
        uint8_t read[4];
        int r = 0;

        if (most == 0)
                return 0;
        if (header->level_encodings[kind] != PARQUET_RLE)
                return why_set(why, -ENOTSUP,
                               "has levels encoded as %s, which is not supported; stage the dataset with prepare = "
                               "\"convert\", or write it again",
                               parquet_encoding_name(header->level_encodings[kind]));
        if (!parquet_take(bytes, 4, &head))
                return parquet_page_damaged("its levels are longer than it", why);
        if (!head.bytes)
                r = listed_read(reader->fd, read, sizeof(read), head.offset, why);
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
/* Values that are plain may stay in the file; indices have to be read. */
static bool stays_in_file(const struct parquet_reader *reader, const struct parquet_page_header *header) {
        return reader->codec == PARQUET_UNCOMPRESSED && header->n_packed == header->n_plain &&
               (reader->is_levels_only || (reader->is_in_file && header->encoding == PARQUET_PLAIN));
}

static int begin_page(struct parquet_reader *reader, const struct parquet_page_header *header, struct why *why) {
        struct parquet_page_bytes bytes = { NULL, reader->at + header->n_header, header->n_packed };
        int r = 0;

        if (header->n_values > reader->n_left)
                return parquet_page_damaged("it has more values than its column", why);
        if (!stays_in_file(reader, header))
                r = parquet_page_load(reader->fd, reader->at, header, reader->codec, &reader->packed, &reader->plain,
                                      reader->memory, &bytes, why);
        reader->encoding = header->encoding;
        if (r == 0)
                r = begin_levels(reader, &bytes, header, why);
        if (r == 0)
                r = parquet_values_begin(reader, header->n_values, &bytes, why);
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
                r = reader->is_levels_only ? 0 : parquet_values_dictionary(reader, &header, why);
                break;
        default: /* indices, and what is not known yet */
                break;
        }
        reader->at += header.n_header + header.n_packed;
        return r;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

/* Looks at the next entry. */
static int parquet_reader_look(struct parquet_reader *reader, struct why *why) {
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
                return parquet_page_damaged("its levels are wrong", why);
        reader->n_page--;
        reader->n_left--;
        reader->has_entry = true;
        if (reader->n_left % LOOK_ENTRIES == 0 && indexing_is_over()) /* a list may have billions of them */
                return why_set(why, -ECANCELED, "indexing was cancelled");
        return 0;
}

static int look_for_row(struct parquet_reader *reader, struct why *why) {
        int r = parquet_reader_look(reader, why);

        if (r == END)
                return why_set(why, -EBADMSG, "has fewer rows than its row group; write the file again");
        if (r == 0 && reader->n_repeated_now > 0)
                return parquet_page_damaged("a row begins within a list", why);
        return r;
}

int parquet_reader_next(struct parquet_reader *reader, struct columnar_value *ret_value, struct why *why) {
        int r = reader->is_missing ? 0 : look_for_row(reader, why);

        *ret_value = (struct columnar_value){ .offset = COLUMNAR_NULL };
        if (r < 0 || reader->is_missing)
                return r;
        reader->has_entry = false;
        if (reader->n_defined_now == reader->element->n_defined)
                return parquet_values_next(reader, ret_value, why);
        *ret_value = (struct columnar_value){ .offset = COLUMNAR_NULL };
        return 0;
}

int parquet_reader_end(const struct parquet_reader *reader, struct why *why) {
        if (reader->is_missing || (reader->n_left == 0 && reader->n_page == 0 && !reader->has_entry))
                return 0;
        return why_set(why, -EBADMSG, "has more rows than its row group; write the file again");
}

/* ---- lists ----------------------------------------------------------------------------------------------------- */

static int append_number(struct parquet_reader *reader, uint64_t n_before, struct growing *elements, struct why *why) {
        uint64_t n_each = dlp_dtype_bytes(reader->element->dtype);
        struct columnar_value value;
        uint8_t number[8];
        int r = parquet_values_next(reader, &value, why);

        if (r < 0)
                return r;
        if (n_before * n_each > LIST_MAX)
                return why_set(why, -EFBIG, "has a list of more than %u MiB; split it", LIST_MAX >> 20);
        if (reader->is_levels_only)
                return 0;
        if (!parquet_number(reader->element, value.bytes, number))
                return why_set(why, -EBADMSG, "has a number that does not fit %s; write the file again",
                               dlp_dtype_name(reader->element->dtype));
        r = growing_append(elements, number, n_each);
        return r < 0 ? why_set(why, r, "no memory for a list") : 0;
}

/* The lists below `level` end here: those of one level have all the same length. */
static int close_lists(const struct parquet_reader *reader, struct columnar_widths *widths, const uint64_t *counts,
                       uint32_t level, struct why *why) {
        for (uint32_t k = level + 1; k <= reader->element->n_repeated; k++) {
                if (widths->n[k - 1] == COLUMNAR_WIDTH_NONE)
                        widths->n[k - 1] = counts[k];
                if (counts[k] != widths->n[k - 1])
                        return why_set(why, -ENOTSUP,
                                       "has inner lists of %" PRIu64 " and of %" PRIu64
                                       " elements: only the outer lists may differ in length",
                                       widths->n[k - 1], counts[k]);
        }
        return 0;
}

/* An entry that is a part of a list. */
static int parquet_reader_take_entry(struct parquet_reader *reader, uint64_t *counts, uint64_t n_before,
                                     struct growing *elements, struct why *why) {
        const struct parquet_element *element = reader->element;

        reader->has_entry = false;
        if (reader->n_defined_now < element->n_defined)
                return why_set(why, -ENOTSUP,
                               "has lists with missing or empty elements; an array of numbers must have them all");
        counts[reader->n_repeated_now > 0 ? reader->n_repeated_now : 1]++;
        for (uint32_t k = (reader->n_repeated_now > 0 ? reader->n_repeated_now : 1) + 1; k <= element->n_repeated; k++)
                counts[k] = 1;
        return append_number(reader, n_before, elements, why);
}

/* No list, or one without elements. */
static int end_empty(struct parquet_reader *reader, struct why *why) {
        int r;

        reader->has_entry = false;
        r = parquet_reader_look(reader, why);
        if (r == 0 && reader->n_repeated_now > 0)
                return parquet_page_damaged("an empty list has elements", why);
        return r < 0 ? r : 0;
}

int parquet_reader_next_list(struct parquet_reader *reader, struct columnar_widths *widths, struct growing *elements,
                             bool *ret_is_null, struct why *why) {
        uint64_t counts[PARQUET_LEVELS_MAX + 1] = { 0 }, n_elements = 0;
        int r = reader->is_missing ? 0 : look_for_row(reader, why);

        *ret_is_null = true;
        if (r < 0 || reader->is_missing)
                return r;
        *ret_is_null = reader->n_defined_now + 1 < reader->levels[1];
        if (reader->n_defined_now < reader->levels[1])
                return end_empty(reader, why);
        do {
                if (reader->n_repeated_now > 0)
                        r = close_lists(reader, widths, counts, reader->n_repeated_now, why);
                if (r == 0)
                        r = parquet_reader_take_entry(reader, counts, n_elements++, elements, why);
                if (r == 0)
                        r = parquet_reader_look(reader, why);
        } while (r == 0 && reader->n_repeated_now > 0);
        return r < 0 ? r : close_lists(reader, widths, counts, 1, why);
}

int parquet_reader_next_texts(struct parquet_reader *reader,
                              int (*take)(void *userdata, const struct columnar_value *text, struct why *why),
                              void *userdata, bool *ret_is_null, struct why *why) {
        struct columnar_value text;
        bool is_there;
        int r = reader->is_missing ? 0 : look_for_row(reader, why);

        *ret_is_null = true;
        if (r < 0 || reader->is_missing)
                return r;
        *ret_is_null = reader->n_defined_now + 1 < reader->levels[1];
        if (reader->n_defined_now < reader->levels[1])
                return end_empty(reader, why);
        do {
                reader->has_entry = false;
                is_there = reader->n_defined_now == reader->element->n_defined;
                r = is_there ? parquet_values_next(reader, &text, why) : 0;
                if (r == 0)
                        r = take(userdata, is_there ? &text : NULL, why);
                if (r == 0)
                        r = parquet_reader_look(reader, why);
        } while (r == 0 && reader->n_repeated_now > 0);
        return r < 0 ? r : 0;
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
