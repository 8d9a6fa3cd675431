#include "daemon/data/formats/arrow/pass.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/data/files/listed.h"
#include "proto/base/cleanup.h"

static int in_file(const struct arrow_pass *pass, const char *name, int error, const struct why *detail) {
        return why_set(pass->why, error, "%.150s/%.150s: %.400s", pass->files->root, name, detail->text);
}

/* Which files there are, and in which sequence. */
static int find_files(struct arrow_pass *pass, const char *split) {
        const struct arrow_host *host = pass->host;

        if (!host)
                return arrow_folder_find(&pass->folder, pass->root_fd, pass->files, split, &pass->settled_ns,
                                         pass->why);
        pass->settled_ns = host->settled_ns;
        pass->folder.n_files = host->n_files;
        return growing_append(&pass->folder.names, host->names, host->n_name_bytes) < 0
                       ? why_set(pass->why, -ENOMEM, "%.300s: no memory for the names of its files", pass->files->root)
                       : 0;
}

static int open_table(const struct arrow_pass *pass, int fd, uint64_t n_bytes, struct arrow_table **ret_table,
                      struct why *why) {
        uint64_t begin_byte = 0;
        int r = pass->host ? pass->host->find_table(fd, n_bytes, &begin_byte, &n_bytes, why) : 0;

        if (r == 0)
                r = arrow_table_open(fd, begin_byte, n_bytes, ret_table, why);
        if (r == 0)
                arrow_table_limit(*ret_table, index_watch_max_copied(pass->watch));
        return r;
}

int arrow_pass_open(struct arrow_pass *pass, const char *split, const char *fields) {
        _cleanup_(closep) int fd = -1;
        struct stat status;
        struct why detail;
        const char *name;
        int r = find_files(pass, split);

        if (r < 0)
                return r;
        name = (const char *)pass->folder.names.bytes;
        fd = listed_open(pass->root_fd, pass->files->root, name, &pass->settled_ns, &status, pass->why);
        if (fd < 0)
                return fd;
        r = open_table(pass, fd, (uint64_t)status.st_size, &pass->first, &detail);
        if (r == 0)
                r = arrow_table_next(pass->first, &detail);
        if (r >= 0)
                r = arrow_columns_plan(&pass->columns, arrow_table_schema(pass->first), pass->folder.info, fields,
                                       r == 0 && arrow_table_batch(pass->first)->compression != ARROW_PLAIN, &detail);
        return r < 0 ? in_file(pass, name, r, &detail) : 0;
}

static int look_up(const struct arrow_pass *pass, uint64_t n_rows) {
        const struct index_watch *watch = pass->watch;

        if (watch && watch->cancel && atomic_load_explicit(watch->cancel, memory_order_relaxed))
                return why_set(pass->why, -ECANCELED, "%.300s: indexing was cancelled", pass->files->root);
        if (watch && watch->progress)
                watch->progress(watch->userdata, n_rows);
        return 0;
}

static int run_batch(const struct arrow_pass *pass, const struct arrow_visitor *visitor,
                     const struct arrow_table *table, const char *name, uint64_t *n_rows) {
        uint64_t n = arrow_table_batch(table)->n_rows;
        struct why inner, detail;
        int r = 0;

        for (uint64_t first = 0; first < n && r == 0; first += ARROW_ROWS_MAX) {
                uint32_t n_here = n - first < ARROW_ROWS_MAX ? (uint32_t)(n - first) : ARROW_ROWS_MAX;
                struct arrow_rows rows = arrow_table_rows(table, first, n_here);

                r = visitor->rows(visitor->userdata, &rows, &inner);
                if (r < 0) {
                        why_set(&detail, r, "batch %" PRIu64 ": %.380s", arrow_table_idx_batch(table), inner.text);
                        return in_file(pass, name, r, &detail);
                }
                *n_rows += n_here;
                r = look_up(pass, *n_rows);
        }
        return r;
}

/* The host's list says how many rows each file has. */
static int check_number(const struct arrow_pass *pass, uint64_t idx_file, uint64_t n, struct why *why) {
        if (!pass->host || pass->host->n_rows[idx_file] == n)
                return ARROW_END;
        return why_set(why, -EBADMSG, "has %" PRIu64 " rows, and %s says %" PRIu64 "; copy the files again", n,
                       pass->host->list, pass->host->n_rows[idx_file]);
}

static int run_file(struct arrow_pass *pass, const struct arrow_visitor *visitor, uint64_t idx_file, const char *name,
                    uint64_t *n_rows) {
        _cleanup_(arrow_table_closep) struct arrow_table *table = NULL;
        _cleanup_(closep) int fd = -1;
        uint64_t n_before = *n_rows;
        struct stat status;
        struct why detail;
        int r;

        fd = listed_open(pass->root_fd, pass->files->root, name, &pass->settled_ns, &status, pass->why);
        if (fd < 0)
                return fd;
        r = open_table(pass, fd, (uint64_t)status.st_size, &table, &detail);
        if (r == 0)
                r = arrow_schema_compare(arrow_table_schema(table), arrow_table_schema(pass->first), &detail);
        if (r == 0 && visitor->file)
                r = visitor->file(visitor->userdata, name, &status, &detail);
        while (r == 0 && (r = arrow_table_next(table, &detail)) == 0) {
                r = run_batch(pass, visitor, table, name, n_rows);
                if (r < 0)
                        return r;
        }
        if (r == ARROW_END)
                r = check_number(pass, idx_file, *n_rows - n_before, &detail);
        return r == ARROW_END ? 0 : in_file(pass, name, r, &detail);
}

int arrow_pass_run(struct arrow_pass *pass, const struct arrow_visitor *visitor) {
        const char *name = (const char *)pass->folder.names.bytes;
        uint64_t n_rows = 0;
        int r = 0;

        for (uint64_t i = 0; i < pass->folder.n_files && r == 0; i++, name += strlen(name) + 1)
                r = run_file(pass, visitor, i, name, &n_rows);
        if (r == 0 && n_rows == 0)
                r = why_set(pass->why, -ENOENT, "%.300s: its Arrow files have no rows", pass->files->root);
        return r;
}

void arrow_pass_fini(struct arrow_pass *pass) {
        arrow_columns_fini(&pass->columns);
        arrow_table_close(pass->first);
        arrow_folder_fini(&pass->folder);
}
