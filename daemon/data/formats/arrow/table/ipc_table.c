#include "daemon/data/formats/arrow/table/ipc_table.h"

#include <errno.h>
#include <inttypes.h>

#include "daemon/data/formats/arrow/table/ipc_unpack.h"
#include "proto/base/cleanup.h"

enum {
        DICTIONARY_ID,
        DICTIONARY_RECORD,
        DICTIONARY_IS_DELTA
};

struct arrow_table {
        int fd;
        struct arrow_walk *walk;
        struct arrow_message message;
        struct arrow_schema schema;
        struct arrow_batch batch, values; /* values: of a dictionary */
        struct arrow_dictionaries dictionaries;
        uint64_t n_batches;
        uint64_t max_unpacked; /* bytes */
};

void arrow_table_limit(struct arrow_table *table, uint64_t max_unpacked) {
        table->max_unpacked = max_unpacked < ARROW_UNPACKED_MAX ? max_unpacked : ARROW_UNPACKED_MAX;
}

void arrow_table_close(struct arrow_table *table) {
        if (!table)
                return;
        arrow_walk_close(table->walk);
        arrow_schema_fini(&table->schema);
        arrow_batch_fini(&table->batch);
        arrow_batch_fini(&table->values);
        arrow_dictionaries_fini(&table->dictionaries);
        free(table);
}

void arrow_table_closep(struct arrow_table **table) {
        arrow_table_close(*table);
}

static int read_schema(struct arrow_table *table, struct why *why) {
        int r = arrow_walk_next(table->walk, &table->message, why);

        if (r < 0)
                return r;
        if (table->message.kind != ARROW_MESSAGE_SCHEMA)
                return why_set(why, -EBADMSG, "is damaged: its first message is not a schema");
        return arrow_schema_read(&table->message.header, &table->schema, why);
}

int arrow_table_open(int fd, uint64_t begin_byte, uint64_t n_bytes, struct arrow_table **ret_table, struct why *why) {
        _cleanup_(arrow_table_closep) struct arrow_table *table = calloc(1, sizeof(*table));
        int r;

        if (!table)
                return why_set(why, -ENOMEM, "no memory to read it");
        table->fd = fd;
        table->max_unpacked = ARROW_UNPACKED_MAX;
        r = arrow_walk_open(fd, begin_byte, n_bytes, &table->walk, why);
        if (r == 0)
                r = read_schema(table, why);
        if (r == 0)
                *ret_table = TAKE_PTR(table);
        return r;
}

/* ---- dictionaries ---------------------------------------------------------------------------------------------- */

static bool ipc_table_is_number(const struct arrow_field *field) {
        return field->kind == ARROW_NUMBER || field->kind == ARROW_BOOL;
}

/* Appends a chunk of the values to a dictionary. */
static int add_values(const struct arrow_rows *rows, uint32_t idx_field, struct arrow_dictionary *dictionary,
                      struct why *why) {
        const struct arrow_field *field = arrow_schema_field(rows->schema, idx_field);
        size_t width = field->kind == ARROW_BOOL ? 1 : field->width;
        uint8_t numbers[ARROW_ROWS_MAX * 8];
        bool is_valid[ARROW_ROWS_MAX];
        struct arrow_cell cells[ARROW_ROWS_MAX];
        struct columnar_widths widths = { { 0 } };
        int r = 0;

        if (ipc_table_is_number(field)) {
                r = arrow_numbers(rows, idx_field, numbers, is_valid, why);
                if (r == 0 && (growing_append(&dictionary->numbers, numbers, rows->n * width) < 0 ||
                               growing_append(&dictionary->valid, is_valid, rows->n) < 0))
                        r = why_set(why, -ENOMEM, "no memory for its dictionary");
        } else {
                r = arrow_cells(rows, idx_field, &widths, cells, why);
                if (r == 0 && growing_append(&dictionary->cells, cells, rows->n * sizeof(*cells)) < 0)
                        r = why_set(why, -ENOMEM, "no memory for its dictionary");
        }
        if (r == 0)
                dictionary->n += rows->n;
        return r;
}

/* The dictionary keeps what was unpacked as long as it has these values. */
static int keep_plain(struct arrow_batch *values, uint64_t max_unpacked, struct arrow_dictionary *dictionary,
                      struct why *why) {
        if (!values->plain)
                return 0;
        if (dictionary->n_plain > max_unpacked || values->n_plain > max_unpacked - dictionary->n_plain)
                return why_set(why, -EFBIG,
                               "has more than %" PRIu64
                               " MiB when it is unpacked; write the column without a dictionary, or raise memory_limit",
                               max_unpacked >> 20);
        if (growing_append(&dictionary->plain, &values->unpacked, sizeof(values->unpacked)) < 0)
                return why_set(why, -ENOMEM, "no memory for its dictionary");
        values->unpacked = (struct growing){ 0 };
        values->plain = NULL;
        dictionary->n_plain += values->n_plain;
        return 0;
}

static int ipc_table_read_values(struct arrow_table *table, uint32_t idx_field, const struct flat_table *record,
                                 struct arrow_dictionary *dictionary, struct why *why) {
        const struct arrow_field *field = arrow_schema_field(&table->schema, idx_field);
        int r = arrow_batch_read_dictionary(&table->values, &table->schema, idx_field, record, &table->message, why);

        if (r == 0)
                r = arrow_unpack(&table->values, table->fd, table->max_unpacked, why);
        if (r < 0 ||
            (!ipc_table_is_number(field) && (field->n_children > 0 || !arrow_has_cells(&table->schema, idx_field))))
                return r; /* such a column is refused by name if it is wanted */
        for (uint64_t first = 0; first < table->values.n_rows && r == 0; first += ARROW_ROWS_MAX) {
                uint64_t n_left = table->values.n_rows - first;
                struct arrow_rows rows = arrow_table_rows(table, first,
                                                          n_left < ARROW_ROWS_MAX ? (uint32_t)n_left : ARROW_ROWS_MAX);

                rows.batch = &table->values;
                r = add_values(&rows, idx_field, dictionary, why);
        }
        return r == 0 ? keep_plain(&table->values, table->max_unpacked, dictionary, why) : r;
}

/* Are the values of two fields stored alike, members included? */
static bool has_same_values(const struct arrow_schema *schema, uint32_t idx, uint32_t idx_other) {
        uint32_t n_below = arrow_schema_field(schema, idx)->n_below;

        if (arrow_schema_field(schema, idx_other)->n_below != n_below)
                return false;
        for (uint32_t i = 0; i <= n_below; i++) {
                const struct arrow_field *one = arrow_schema_field(schema, idx + i),
                                         *two = arrow_schema_field(schema, idx_other + i);

                if (one->kind != two->kind || one->is_large != two->is_large || one->is_text != two->is_text ||
                    one->width != two->width || one->dtype != two->dtype || one->n_children != two->n_children)
                        return false;
        }
        return true;
}

/* The first field that uses a dictionary. Those that share one must have the same type: its values are read by it. */
static int find_user(const struct arrow_table *table, int64_t id, uint32_t *ret_idx_field, struct why *why) {
        bool is_used = false;

        for (uint32_t i = 0; i < table->schema.n_fields; i++) {
                const struct arrow_field *field = arrow_schema_field(&table->schema, i);

                if (!field->has_dictionary || field->dictionary != id)
                        continue;
                if (is_used && !has_same_values(&table->schema, *ret_idx_field, i))
                        return why_set(why, -EBADMSG,
                                       "columns of different types use dictionary %" PRId64 "; write the file again",
                                       id);
                if (!is_used)
                        *ret_idx_field = i;
                is_used = true;
        }
        if (!is_used)
                return why_set(why, -EBADMSG, "no column uses dictionary %" PRId64 "; write the file again", id);
        return 0;
}

static int ipc_table_read_dictionary(struct arrow_table *table, struct why *why) {
        const struct flat_table *header = &table->message.header;
        int64_t id = flat_signed(header, DICTIONARY_ID, 8, 0);
        struct flat_table record = flat_inner(header, DICTIONARY_RECORD);
        bool is_delta = flat_unsigned(header, DICTIONARY_IS_DELTA, 1, 0) != 0;
        struct arrow_dictionary *dictionary;
        uint32_t idx_field = 0;
        int r = find_user(table, id, &idx_field, why);

        if (r < 0)
                return r;
        dictionary = arrow_dictionary_get(&table->dictionaries, id);
        if (!dictionary)
                return why_set(why, -ENOMEM, "no memory for its dictionary");
        if (!is_delta)
                arrow_dictionary_clear(dictionary);
        return ipc_table_read_values(table, idx_field, &record, dictionary, why);
}

/* ---- batches --------------------------------------------------------------------------------------------------- */

static int next_message(struct arrow_table *table, struct why *why) {
        struct why detail;
        int r = arrow_walk_next(table->walk, &table->message, why);

        if (r != 0)
                return r;
        switch (table->message.kind) {
        case ARROW_MESSAGE_DICTIONARY:
                r = ipc_table_read_dictionary(table, &detail);
                return r < 0 ? why_set(why, r, "dictionary at byte %" PRIu64 ": %s", table->message.begin, detail.text)
                             : 0;
        case ARROW_MESSAGE_BATCH:
                r = arrow_batch_read(&table->batch, &table->schema, &table->message, &detail);
                if (r == 0)
                        r = arrow_unpack(&table->batch, table->fd, table->max_unpacked, &detail);
                return r < 0 ? why_set(why, r, "batch %" PRIu64 ": %s", table->n_batches, detail.text) : 0;
        default:
                return why_set(why, -EBADMSG, "at byte %" PRIu64 ": a second schema; split what was joined into files",
                               table->message.begin);
        }
}

int arrow_table_next(struct arrow_table *table, struct why *why) {
        int r;

        do {
                r = next_message(table, why);
                if (r != 0)
                        return r;
        } while (table->message.kind != ARROW_MESSAGE_BATCH);
        table->n_batches++;
        return 0;
}

const struct arrow_schema *arrow_table_schema(const struct arrow_table *table) {
        return &table->schema;
}

const struct arrow_batch *arrow_table_batch(const struct arrow_table *table) {
        return &table->batch;
}

uint64_t arrow_table_idx_batch(const struct arrow_table *table) {
        return table->n_batches - 1;
}

struct arrow_rows arrow_table_rows(const struct arrow_table *table, uint64_t first, uint32_t n) {
        return (struct arrow_rows){
                .fd = table->fd,
                .schema = &table->schema,
                .batch = &table->batch,
                .dictionaries = &table->dictionaries,
                .first = first,
                .n = n,
        };
}
