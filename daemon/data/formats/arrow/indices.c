#include "daemon/data/formats/arrow/indices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/machine/own_file.h"
#include "daemon/data/formats/arrow/table/ipc_table.h"
#include "daemon/data/index/index.h"
#include "proto/base/cleanup.h"

#define VALUES_MAX (2ull << 30) /* bytes of all values together: a long text may be named millions of times */

/* What the samples are taken from, and where they go. */
struct ordering {
        struct columnar_pass *pass;
        const struct listed *indices;
        const struct source *all; /* an index */
        struct index_builder *into;
        struct index_row rows[INDEX_FIELDS_MAX]; /* of the sample that is given */
        struct growing value;
        uint64_t n_value_bytes; /* of all values */
};

/* ---- samples ----------------------------------------------------------------------------------------------------- */

static void find_stored(const struct source *all, uint64_t sample, uint32_t field, struct index_row *ret_row) {
        struct extent extent;

        source_locate(all, sample, field, &extent);
        *ret_row = (struct index_row){ .file = INDEX_NO_FILE,
                                       .offset = extent.flags & EXTENT_ABSENT ? INDEX_ROW_ABSENT : extent.offset,
                                       .length = extent.length };
}

/* A column's value; `idx` counts columns, which follow the stored fields. */
static int indices_give_value(struct ordering *ordering, uint64_t sample, uint32_t idx) {
        uint32_t field = index_n_fields(ordering->all) + idx;
        uint64_t n_bytes;
        int r;

        if (!source_has(ordering->all, sample, field))
                return 0;
        n_bytes = source_length(ordering->all, sample, field);
        ordering->n_value_bytes += n_bytes;
        if (ordering->n_value_bytes > VALUES_MAX)
                return -EFBIG;
        growing_clear(&ordering->value);
        r = growing_append(&ordering->value, NULL, n_bytes + 1); /* one more: it is not NULL */
        if (r < 0)
                return r;
        source_value(ordering->all, sample, field, ordering->value.bytes);
        return index_builder_set_value(ordering->into, idx, ordering->value.bytes, n_bytes);
}

static int give_sample(struct ordering *ordering, uint64_t sample) {
        struct index_row *rows = ordering->rows;
        uint32_t n_stored = index_n_fields(ordering->all), n_columns = index_n_columns(ordering->all);
        int r = 0;

        for (uint32_t i = 0; i < n_stored; i++)
                find_stored(ordering->all, sample, i, &rows[i]);
        for (uint32_t i = 0; i < n_columns && r >= 0; i++)
                r = indices_give_value(ordering, sample, i);
        if (r >= 0)
                r = index_builder_add_sample(ordering->into, rows, index_label(ordering->all, sample));
        return r;
}

/* ---- row numbers ------------------------------------------------------------------------------------------------- */

static int indices_give_rows(struct ordering *ordering, const struct arrow_rows *rows, struct why *why) {
        uint64_t numbers[ARROW_ROWS_MAX];
        bool is_valid[ARROW_ROWS_MAX];
        int r = arrow_numbers(rows, 0, numbers, is_valid, why);

        for (uint32_t i = 0; i < rows->n && r == 0; i++) {
                if (!is_valid[i] || numbers[i] >= ordering->all->n_samples)
                        return why_set(why, -EBADMSG,
                                       "it names the row %" PRIu64 ", and the dataset has %" PRIu64 " rows",
                                       is_valid[i] ? numbers[i] : UINT64_MAX, ordering->all->n_samples);
                r = give_sample(ordering, numbers[i]);
                if (r == -EFBIG)
                        return why_set(why, r, "the values of the rows that it names have more than %llu MiB together",
                                       VALUES_MAX >> 20);
                if (r < 0)
                        why_errno(why, r, "its samples");
        }
        return r < 0 ? r : 0;
}

static int check_schema(const struct arrow_schema *schema, struct why *why) {
        const struct arrow_field *field = schema->n_columns == 1 ? arrow_schema_field(schema, 0) : NULL;

        if (!field || field->kind != ARROW_NUMBER || field->has_dictionary || field->dtype != DLP_DTYPE_UINT64)
                return why_set(why, -EBADMSG, "is named as an indices file, and is not one column of uint64");
        return 0;
}

static int indices_give_file(struct ordering *ordering, int fd, uint64_t n_bytes, struct why *why) {
        _cleanup_(arrow_table_closep) struct arrow_table *table = NULL;
        int r = arrow_table_open(fd, 0, n_bytes, &table, why);

        if (r == 0)
                r = check_schema(arrow_table_schema(table), why);
        while (r == 0 && (r = arrow_table_next(table, why)) == 0)
                for (uint64_t n = arrow_table_batch(table)->n_rows, at = 0; at < n && r == 0; at += ARROW_ROWS_MAX) {
                        struct arrow_rows rows = arrow_table_rows(
                                table, at, n - at < ARROW_ROWS_MAX ? (uint32_t)(n - at) : ARROW_ROWS_MAX);

                        r = indices_give_rows(ordering, &rows, why);
                }
        return r == ARROW_END ? 0 : r;
}

/* Calls one() for each indices file. */
static int each_file(struct ordering *ordering, int (*one)(struct ordering *ordering, const char *name, int fd,
                                                           const struct stat *status, struct why *why)) {
        struct columnar_pass *pass = ordering->pass;
        const struct listed *indices = ordering->indices;
        int r = 0;

        for (size_t i = 0; i < indices->n && r == 0; i++) {
                const char *name = indices->names[i];
                struct stat status;
                struct why detail;
                _cleanup_(closep) int fd = listed_open(pass->root_fd, pass->files->root, name, &pass->settled_ns,
                                                       &status, pass->why);

                if (fd < 0)
                        return fd;
                r = one(ordering, name, fd, &status, &detail);
                if (r < 0)
                        why_set(pass->why, r, "%s/%s: %s", pass->files->root, name, detail.text);
        }
        return r;
}

/* Shards without samples: when one changes, the index is made anew. */
static int indices_note_file(struct ordering *ordering, const char *name, int fd, const struct stat *status,
                             struct why *why) {
        int r = index_builder_add_shard(ordering->into, name, status);

        (void)fd;
        return r < 0 ? why_errno(why, r, "its samples") : 0;
}

static int indices_read_file(struct ordering *ordering, const char *name, int fd, const struct stat *status,
                             struct why *why) {
        (void)name;
        return indices_give_file(ordering, fd, (uint64_t)status->st_size, why);
}

int arrow_indices_apply(struct columnar_pass *pass, const struct listed *indices, struct index_builder *all,
                        struct index_builder *described) {
        _cleanup_(source_closep) struct source *source = NULL;
        struct ordering ordering = { .pass = pass, .indices = indices, .into = described };
        _cleanup_(closep) int fd = -1;
        int r = own_file_make("dataloaderd-rows", &fd);

        if (r < 0)
                return why_errno(pass->why, r, "%s: memory for its index", pass->files->root);
        r = index_builder_write(all, fd, pass->files->root, pass->why);
        if (r == 0)
                r = index_open_fd(fd, pass->files->root, NULL, &source, pass->why);
        if (r < 0)
                return r;
        ordering.all = source;
        r = each_file(&ordering, indices_note_file);
        if (r == 0) {
                r = index_builder_add_shard(described, pass->listed->names[0], &pass->status);
                if (r < 0)
                        why_errno(pass->why, r, "%s: its index", pass->files->root);
        }
        if (r >= 0)
                r = each_file(&ordering, indices_read_file);
        growing_fini(&ordering.value);
        return r < 0 ? r : 0;
}
