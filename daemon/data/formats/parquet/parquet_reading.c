#include "daemon/data/formats/parquet/parquet_reading.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/formats/arrow/table/ipc_schema.h"
#include "daemon/data/formats/arrow/table/message.h"
#include "daemon/data/formats/parquet/pages/parquet_reader.h"
#include "proto/base/cleanup.h"

#define ARROW_NONE UINT32_MAX

struct parquet_reading {
        const struct columnar_pass *pass;
        int fd;
        struct parquet_footer footer;
        struct arrow_schema note; /* of the first file, when columns are planned */
        struct parquet_chunk *chunks;
        uint64_t idx_group, end_group; /* the next one, and the one after the last */
        struct columnar_rows rows;     /* of the group that is read */
        struct parquet_memory memory;
        struct parquet_reader *readers; /* one for each column; in the first pass one, and one for paths */
        uint32_t n_readers;
        struct growing elements; /* of the list of a row */
        int64_t number;
};

/* ---- Arrow's note ------------------------------------------------------------------------------------------------ */

/* What Parquet cannot say about a column, and Arrow's writers note: that all lists of a level have the same length. The
 * note is an Arrow schema message in base64. It only adds to Parquet's own schema: one that is absent, damaged, or of
 * another shape says nothing, and the schema has no columns then. Returns 0 or -ENOMEM. */
static int parquet_arrow_read(const struct parquet_note *note, struct arrow_schema *ret_schema) {
        size_t n = note->n;
        _cleanup_(growing_fini) struct growing decoded = { 0 };
        struct flat_table header;
        struct flat flat;
        int n_bytes, r;

        *ret_schema = (struct arrow_schema){ 0 };
        if (n == 0 || n > INT_MAX / 2)
                return 0;
        if (growing_reserve(&decoded, n / 4 * 3 + 3) < 0)
                return -ENOMEM;
        n_bytes = EVP_DecodeBlock(decoded.bytes, (const unsigned char *)note->text, (int)n);
        if (n_bytes <= 0)
                return 0;
        header = arrow_message_alone(decoded.bytes, (size_t)n_bytes, ARROW_MESSAGE_SCHEMA, &flat);
        r = header.flat ? arrow_schema_read(&header, ret_schema, NULL) : 0;
        return r == -ENOMEM ? r : 0;
}

/* The field of this name: a column, or a member of the struct `parent` (ARROW_NONE: a column). ARROW_NONE: there is
 * none. */
static uint32_t parquet_arrow_find(const struct arrow_schema *schema, uint32_t parent, const char *name) {
        uint32_t idx = parent == ARROW_NONE ? 0 : parent + 1, end = schema->n_fields;

        if (parent != ARROW_NONE)
                end = idx + arrow_schema_field(schema, parent)->n_below;
        while (idx < end) {
                const struct arrow_field *field = arrow_schema_field(schema, idx);

                if (strcmp(arrow_schema_text(schema, field->name), name) == 0)
                        return idx;
                idx += 1 + field->n_below;
        }
        return ARROW_NONE;
}

/* Writes the lengths of the lists of a field with n_dims levels where they are fixed, and leaves the others. */
static void parquet_arrow_shape(const struct arrow_schema *schema, uint32_t field, uint32_t n_dims, int64_t *shape) {
        for (uint32_t i = 0; i < n_dims && field < schema->n_fields - i; i++) {
                const struct arrow_field *list = arrow_schema_field(schema, field + i);

                if (list->n_children != 1)
                        return;
                if (list->kind == ARROW_FIXED_LIST && list->width > 0)
                        shape[i] = list->width;
        }
}

/* ---- planning ---------------------------------------------------------------------------------------------------- */

static enum field_kind parquet_kind_of(const void *schema, uint32_t idx) {
        const struct parquet_element *element = parquet_element(schema, idx);

        if (element->n_repeated > 0)
                return FIELD_VALUE;
        return element->meaning == PARQUET_BYTES  ? FIELD_BYTES
               : element->meaning == PARQUET_TEXT ? FIELD_TEXT
                                                  : FIELD_VALUE;
}

static const char *parquet_type_name(const void *schema, uint32_t idx) {
        return parquet_element(schema, idx)->type;
}

static uint32_t parquet_dtype_of(const void *schema, uint32_t idx) {
        return parquet_element(schema, idx)->dtype;
}

static int parquet_begin_plan(const struct columnar_pass *pass, struct columnar_planning *planning) {
        struct parquet_reading *reading = planning->reading;
        int r = parquet_arrow_read(&reading->footer.arrow, &reading->note);

        (void)pass;
        planning->notes = reading->footer.notes.text;
        planning->n_notes = reading->footer.notes.n;
        return r < 0 ? why_set(planning->why, r, "no memory for its columns") : 0;
}

/* The field of Arrow's schema, or ARROW_NONE. */
static uint32_t parquet_note_of(const struct columnar_planning *planning, const struct columnar_candidate *parent,
                                const char *name) {
        const struct parquet_reading *reading = planning->reading;

        if (parent && parent->note == ARROW_NONE)
                return ARROW_NONE;
        return parquet_arrow_find(&reading->note, parent ? parent->note : ARROW_NONE, name);
}

static int parquet_refuse(const struct columnar_planning *planning, const struct columnar_candidate *candidate) {
        const struct parquet_element *element = parquet_element(planning->schema, candidate->idx), *last = element;
        char type[160];

        for (uint32_t i = candidate->idx; last->n_children == 1; i++)
                last = parquet_element(planning->schema, i + 1);
        if (element->physical == PARQUET_INT96 && element->meaning == PARQUET_OTHER)
                return why_set(planning->why, -ENOTSUP,
                               "column \"%s\" is int96, a time as old writers stored it; stage the dataset with "
                               "prepare = \"convert\"",
                               candidate->name);
        snprintf(type, sizeof(type), "a %s%s%s%s", element->is_repeated ? "list of " : "", element->type,
                 last != element ? " of " : "", last != element ? last->n_children > 0 ? "structs" : last->type : "");
        return columnar_refuse(planning, candidate->name, type);
}

/* The leaf at the end of lists; 0 if there is something else between. A list is a group with one repeated member, which
 * is the element, or a group of one member, which is the element. */
static uint32_t parquet_find_element(const struct parquet_schema *schema, uint32_t idx) {
        for (;;) {
                const struct parquet_element *list = parquet_element(schema, idx), *member = list + 1;
                const char *name;

                if (list->meaning < PARQUET_LIST)
                        return idx;
                if (list->meaning != PARQUET_LIST || list->n_children != 1 || !member->is_repeated)
                        return 0;
                name = parquet_element_name(schema, idx + 1);
                if (member->meaning >= PARQUET_LIST) {
                        size_t n = strlen(name);

                        /* Under these names old writers have lists of structs with one member. */
                        if (member->n_children != 1 || member[1].is_repeated || strcmp(name, "array") == 0 ||
                            (n > 6 && strcmp(name + n - 6, "_tuple") == 0))
                                return 0;
                        idx++;
                }
                idx++;
        }
}

static int parquet_plan_list(const struct columnar_planning *planning, const struct columnar_candidate *candidate,
                             struct columnar_column *column) {
        const struct parquet_reading *reading = planning->reading;
        uint32_t idx_leaf = parquet_find_element(planning->schema, candidate->idx);
        const struct parquet_element *leaf = parquet_element(planning->schema, idx_leaf);

        column->place.idx_field = idx_leaf;
        if (idx_leaf > 0 && leaf->meaning == PARQUET_TEXT && leaf->n_repeated == 1) {
                column->role = COLUMNAR_TEXTS;
                column->field.kind = FIELD_TEXTS;
                return 0;
        }
        if (idx_leaf == 0 || leaf->meaning != PARQUET_NUMBER || leaf->n_repeated > PARQUET_LEVELS_MAX)
                return parquet_refuse(planning, candidate);
        column->role = COLUMNAR_LIST;
        column->field.kind = FIELD_VALUE;
        column->field.dtype = leaf->dtype;
        column->field.n_dims = leaf->n_repeated;
        for (uint32_t i = 0; i < leaf->n_repeated; i++)
                column->field.shape[i] = -1;
        parquet_arrow_shape(&reading->note, candidate->note, leaf->n_repeated, column->field.shape);
        for (uint32_t i = 1; i < leaf->n_repeated; i++) {
                if (column->field.shape[i] < 0)
                        column->is_surveyed = true;
                else
                        column->widths.n[i] = (uint64_t)column->field.shape[i];
        }
        return 0;
}

static int parquet_plan(const struct columnar_planning *planning, const struct columnar_candidate *candidate,
                        struct columnar_column *column) {
        const struct parquet_element *element = parquet_element(planning->schema, candidate->idx);

        if (element->is_repeated || element->meaning == PARQUET_LIST)
                return parquet_plan_list(planning, candidate, column);
        switch (element->meaning) {
        case PARQUET_NUMBER:
                column->role = COLUMNAR_NUMBER;
                column->field.kind = FIELD_VALUE;
                column->field.dtype = element->dtype;
                return 0;
        case PARQUET_TEXT:
        case PARQUET_BYTES:
                column->role = COLUMNAR_STORED;
                column->field.kind = element->meaning == PARQUET_TEXT ? FIELD_TEXT : FIELD_BYTES;
                return 0;
        case PARQUET_NOTHING:
                column->role = COLUMNAR_COPIED;
                column->field.kind = FIELD_BYTES;
                return 0;
        default:
                return parquet_refuse(planning, candidate);
        }
}

static int parquet_compressed(const struct columnar_column *column, struct why *why) {
        return why_set(why, -ENOTSUP,
                       "column \"%s\" holds pictures or sound, and its pages are compressed, so that no sample can be "
                       "read alone; stage the dataset with prepare = \"convert\", or write it again: with datasets 4.6 "
                       "or newer, or with pyarrow's compression={\"%s\": \"none\", ...}",
                       column->field.name, column->field.name);
}

/* ---- a file ------------------------------------------------------------------------------------------------------ */

static void parquet_close(void *opened) {
        struct parquet_reading *reading = opened;

        for (uint32_t i = 0; reading->readers && i < reading->n_readers; i++)
                parquet_reader_fini(&reading->readers[i]);
        free(reading->readers);
        growing_fini(&reading->elements);
        free(reading->chunks);
        arrow_schema_fini(&reading->note);
        parquet_footer_fini(&reading->footer);
        free(reading);
}

static int parquet_make_readers(struct parquet_reading *reading) {
        const struct columnar_columns *columns = &reading->pass->columns;

        reading->n_readers = columns->is_settled ? columns->n : 2;
        reading->readers = calloc(reading->n_readers, sizeof(*reading->readers));
        reading->chunks = calloc(reading->footer.schema.n_leaves + 1u, sizeof(*reading->chunks));
        for (uint32_t i = 0; reading->readers && i < reading->n_readers; i++) {
                const struct columnar_column *column = &columns->all[i];

                reading->readers[i].fd = reading->fd;
                reading->readers[i].memory = &reading->memory;
                reading->readers[i].is_in_file = columns->is_settled && columnar_is_stored(column) &&
                                                 !columnar_has_own_file(column);
        }
        return reading->readers && reading->chunks ? 0 : -ENOMEM;
}

static int parquet_open(const struct columnar_pass *pass, int fd, uint64_t n_bytes, size_t idx_file, uint64_t part,
                        uint64_t n_parts, void **ret_reading, struct why *why) {
        struct parquet_reading *reading = calloc(1, sizeof(*reading));
        uint64_t max_bytes = columnar_share(pass, PARQUET_MEMORY_OF(index_watch_max_copied(pass->watch)));
        uint64_t begin_group;
        int r;

        (void)idx_file;
        if (!reading)
                return why_set(why, -ENOMEM, "no memory to read it");
        *reading = (struct parquet_reading){ .pass = pass, .fd = fd, .memory = { .max_bytes = max_bytes } };
        r = parquet_footer_read(fd, n_bytes, &reading->footer, why);
        if (r == 0 && parquet_make_readers(reading) < 0)
                r = why_set(why, -ENOMEM, "no memory for its columns");
        if (r < 0) {
                parquet_close(reading);
                return r;
        }
        begin_group = part * reading->footer.n_groups / n_parts;
        reading->end_group = (part + 1) * reading->footer.n_groups / n_parts;
        for (; reading->idx_group < begin_group; reading->idx_group++)
                reading->rows.first += parquet_footer_rows(&reading->footer, reading->idx_group);
        *ret_reading = reading;
        return 0;
}

static const void *parquet_schema_of(const void *reading) {
        return &((const struct parquet_reading *)reading)->footer.schema;
}

static bool parquet_is_empty(const void *reading) {
        return ((const struct parquet_reading *)reading)->footer.n_rows == 0;
}

static int parquet_next(void *opened, struct columnar_rows *ret_rows, struct why *why) {
        struct parquet_reading *reading = opened;
        struct columnar_rows *rows = &reading->rows;
        struct why detail;
        int r;

        do {
                if (reading->idx_group == reading->end_group)
                        return COLUMNAR_END;
                rows->first += rows->n;
                rows->idx = reading->idx_group++;
                rows->n = parquet_footer_rows(&reading->footer, rows->idx);
        } while (rows->n == 0);
        *ret_rows = *rows;
        for (uint32_t i = 0; i < reading->n_readers; i++)
                parquet_reader_fini(&reading->readers[i]); /* each group has the same memory, whoever reads it */
        r = parquet_footer_chunks(&reading->footer, rows->idx, reading->chunks, &detail);
        return r < 0 ? why_set(why, r, "row group %" PRIu64 ": %s", rows->idx, detail.text) : 0;
}

/* The chunk of a leaf; NULL: the file does not have it. */
static const struct parquet_chunk *parquet_chunk_of(const struct parquet_reading *reading, uint32_t idx) {
        if (idx == COLUMN_NONE)
                return NULL;
        return &reading->chunks[parquet_element(&reading->footer.schema, idx)->idx_leaf];
}

static int parquet_begin_reader(struct parquet_reading *reading, uint32_t idx_reader, uint32_t idx, struct why *why) {
        struct parquet_reader *reader = &reading->readers[idx_reader];
        const struct parquet_chunk *chunk = parquet_chunk_of(reading, idx);

        if (chunk)
                return parquet_reader_begin(reader, &reading->footer, idx, chunk, why);
        parquet_reader_begin_missing(reader);
        return 0;
}

/* ---- the first pass ---------------------------------------------------------------------------------------------- */

static int parquet_read_number(struct parquet_reader *reader, void *ret_number, bool *ret_fits, bool *ret_is_null,
                               struct why *why) {
        struct columnar_value value;
        int r = parquet_reader_next(reader, &value, why);

        *ret_is_null = r == 0 && columnar_is_null(&value);
        *ret_fits = r == 0 && !*ret_is_null && parquet_number(reader->element, value.bytes, ret_number);
        return r;
}

static int parquet_survey_row(struct parquet_reading *reading, struct columnar_column *column, struct why *why) {
        struct columnar_value bytes, path;
        bool fits, is_null;
        int r;

        if (column->class_names) {
                r = parquet_read_number(reading->readers, &reading->number, &fits, &is_null, why);
                if (r == 0)
                        columnar_see_label(column, fits ? &reading->number : NULL);
                return r;
        }
        if (column->role == COLUMNAR_MEDIA) {
                r = parquet_reader_next(&reading->readers[0], &bytes, why);
                if (r == 0)
                        r = parquet_reader_next(&reading->readers[1], &path, why);
                if (r == 0)
                        columnar_see_media(column, !columnar_is_null(&bytes), !columnar_is_null(&path));
                return r;
        }
        growing_clear(&reading->elements);
        return parquet_reader_next_list(reading->readers, &column->widths, &reading->elements, &is_null, why);
}

/* Can its bytes be read? And what do its rows say? */
static int parquet_survey(void *opened, struct columnar_column *column, struct why *why) {
        struct parquet_reading *reading = opened;
        bool is_media = column->role == COLUMNAR_MEDIA;
        uint32_t idx = is_media ? column->here.idx_bytes : column->here.idx_field;
        const struct parquet_chunk *chunk = parquet_chunk_of(reading, idx);
        int r = chunk ? parquet_chunk_check(chunk, why) : 0;

        column->is_compressed |= chunk && !chunk->is_verbatim;
        if (r < 0 || !column->is_surveyed)
                return r;
        reading->readers[0].is_levels_only = reading->readers[1].is_levels_only = !column->class_names;
        r = parquet_begin_reader(reading, 0, idx, why);
        if (r == 0 && is_media)
                r = parquet_begin_reader(reading, 1, column->here.idx_path, why);
        for (uint64_t i = 0; i < reading->rows.n && r == 0; i++) {
                r = parquet_survey_row(reading, column, why);
                if (r == 0 && (i + 1) % COLUMNAR_ROWS_MAX == 0)
                        r = columnar_look_up((struct columnar_pass *)reading->pass, 0, why);
        }
        return r;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static int parquet_begin(void *opened, uint32_t idx, struct why *why) {
        struct parquet_reading *reading = opened;
        const struct columnar_column *column = &reading->pass->columns.all[idx];

        return parquet_begin_reader(reading, idx,
                                    column->role != COLUMNAR_MEDIA  ? column->here.idx_field
                                    : columnar_has_own_file(column) ? column->here.idx_path
                                                                    : column->here.idx_bytes,
                                    why);
}

static int parquet_end(void *opened, uint32_t idx, struct why *why) {
        return parquet_reader_end(&((struct parquet_reading *)opened)->readers[idx], why);
}

static int parquet_number_value(struct parquet_reading *reading, struct parquet_reader *reader,
                                struct columnar_value *ret_value, struct why *why) {
        bool fits, is_null;
        int r = parquet_read_number(reader, &reading->number, &fits, &is_null, why);

        if (r < 0 || is_null)
                return r;
        if (!fits)
                return why_set(why, -EBADMSG, "has a number that does not fit %s; write the file again",
                               dlp_dtype_name(reader->element->dtype));
        ret_value->bytes = (const uint8_t *)&reading->number;
        return 0;
}

static int parquet_list_value(struct parquet_reading *reading, struct columnar_column *column,
                              struct parquet_reader *reader, struct columnar_value *ret_value, struct why *why) {
        const struct schema_field *field = &column->field;
        uint64_t n_bytes = dlp_dtype_bytes(column->here.dtype);
        bool is_missing;
        int r;

        growing_clear(&reading->elements);
        r = parquet_reader_next_list(reader, &column->widths, &reading->elements, &is_missing, why);
        if (r < 0 || is_missing)
                return r;
        for (uint32_t i = 0; i < field->n_dims && field->shape[0] > 0; i++)
                n_bytes *= (uint64_t)field->shape[i];
        if (field->shape[0] > 0 && reading->elements.n_bytes != n_bytes)
                return why_set(why, -EBADMSG,
                               "has a list of another length than the %" PRIi64
                               " elements of its Arrow type; write the file again",
                               field->shape[0]);
        ret_value->bytes = reading->elements.n_bytes > 0 ? reading->elements.bytes : (const uint8_t *)"";
        ret_value->n_bytes = reading->elements.n_bytes;
        return 0;
}

static int parquet_value(void *opened, uint32_t idx, uint64_t row, struct columnar_value *ret_value, struct why *why) {
        struct parquet_reading *reading = opened;
        struct columnar_column *column = &reading->pass->columns.all[idx];
        struct parquet_reader *reader = &reading->readers[idx];
        int r;

        (void)row;
        *ret_value = (struct columnar_value){ .offset = COLUMNAR_NULL };
        switch (column->role) {
        case COLUMNAR_NUMBER:
        case COLUMNAR_CLASS:
                return parquet_number_value(reading, reader, ret_value, why);
        case COLUMNAR_LIST:
                return parquet_list_value(reading, column, reader, ret_value, why);
        default:
                r = parquet_reader_next(reader, ret_value, why);
                if (r < 0 || columnar_is_null(ret_value))
                        return r;
                if (reader->element->meaning == PARQUET_NOTHING)
                        return why_set(why, -EBADMSG, "is of the type null, but has a value; write the file again");
                if (!ret_value->bytes && !reader->is_in_file)
                        ret_value->bytes = (const uint8_t *)""; /* nothing was decoded */
                return 0;
        }
}

struct taking {
        struct text_list *texts;
        uint64_t row;
};

static int parquet_take_text(void *userdata, const struct columnar_value *text, struct why *why) {
        const struct taking *taking = userdata;

        if (!text)
                return why_set(why, -ENOTSUP,
                               "row %" PRIu64
                               " of the file has a list with a missing text (null); replace it by an empty text",
                               taking->row);
        return text_list_add(taking->texts, text->bytes, text->n_bytes, why);
}

static int parquet_texts(void *opened, uint32_t idx, uint64_t row, struct text_list *texts, bool *ret_is_missing,
                         struct why *why) {
        struct parquet_reading *reading = opened;
        struct taking taking = { .texts = texts, .row = reading->rows.first + row };

        return parquet_reader_next_texts(&reading->readers[idx], parquet_take_text, &taking, ret_is_missing, why);
}

static int parquet_too_much(const struct columnar_column *column, uint64_t max, struct why *why) {
        (void)column;
        return why_set(why, -EFBIG,
                       "the dataset has more than %" PRIu64
                       " MiB when it is unpacked; stage it with prepare = \"convert\", choose columns with fields = "
                       "\"...\", or raise memory_limit",
                       max >> 20);
}

const struct columnar_format PARQUET_READING = {
        .files = "Parquet files",
        .unit = "row group",
        .place = "of the file",
        .elsewhere = "is encoded otherwise than the footer says, or has changed while it was read; try again, or write "
                     "the file again",
        .elsewhere_error = -ESTALE,
        .is_cut = true,
        .is_surveyed = true,
        .type = &PARQUET_COLUMNS,
        .range = parquet_schema_range,
        .kind = parquet_kind_of,
        .type_name = parquet_type_name,
        .dtype = parquet_dtype_of,
        .complete = parquet_schema_complete,
        .begin_plan = parquet_begin_plan,
        .note = parquet_note_of,
        .plan = parquet_plan,
        .open = parquet_open,
        .close = parquet_close,
        .schema = parquet_schema_of,
        .is_empty = parquet_is_empty,
        .next = parquet_next,
        .survey = parquet_survey,
        .begin = parquet_begin,
        .end = parquet_end,
        .value = parquet_value,
        .texts = parquet_texts,
        .too_much = parquet_too_much,
        .compressed = parquet_compressed,
};
