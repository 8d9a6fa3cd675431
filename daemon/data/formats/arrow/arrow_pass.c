#include "daemon/data/formats/arrow/arrow_pass.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/data/files/listed.h"
#include "daemon/data/files/parted.h"
#include "daemon/data/files/seen.h"
#include "daemon/data/formats/copied.h"
#include "proto/base/cleanup.h"

static int arrow_pass_in_file(const struct arrow_pass *pass, const char *name, int error, const struct why *detail) {
        return why_set(pass->why, error, "%s/%s: %s", pass->files->root, name, detail->text);
}

/* Which files there are, and in which sequence. */
static int arrow_pass_find_files(struct arrow_pass *pass, const char *split) {
        const struct arrow_host *host = pass->host;

        if (!host)
                return arrow_folder_find(&pass->folder, pass->root_fd, pass->files, split, &pass->settled_ns,
                                         pass->why);
        pass->settled_ns = host->settled_ns;
        pass->folder.listed.n = host->n_files;
        return growing_append(&pass->folder.listed.memory, host->names, host->n_name_bytes) < 0 ||
                               listed_end(&pass->folder.listed) < 0
                       ? why_set(pass->why, -ENOMEM, "%s: no memory for the names of its files", pass->files->root)
                       : 0;
}

static int open_table(const struct arrow_pass *pass, int fd, uint64_t n_bytes, struct arrow_table **ret_table,
                      struct why *why) {
        uint64_t begin_byte = 0;
        int r = pass->host ? pass->host->find_table(fd, n_bytes, &begin_byte, &n_bytes, why) : 0;

        if (r == 0)
                r = arrow_table_open(fd, begin_byte, n_bytes, ret_table, why);
        if (r == 0)
                arrow_table_limit(*ret_table, index_watch_max_copied(pass->watch) /
                                                      (pass->is_over ? COPIED_PARTS * PARTED_THREADS : 1));
        return r;
}

static int arrow_pass_look_up(const struct arrow_pass *pass, uint64_t n_rows) {
        const struct index_watch *watch = pass->watch;

        if (pass->is_over && atomic_load_explicit(pass->is_over, memory_order_relaxed))
                return why_set(pass->why, -ECANCELED, "another file was refused");
        if (watch && watch->cancel && atomic_load_explicit(watch->cancel, memory_order_relaxed))
                return why_set(pass->why, -ECANCELED, "%s: indexing was cancelled", pass->files->root);
        if (watch && watch->progress)
                watch->progress(watch->userdata, n_rows);
        return 0;
}

/* Opens file `idx` and its table. Returns 0 or an errno, with `why` of the pass. */
static int arrow_pass_open_file(struct arrow_pass *pass, const char *name, int *ret_fd, struct stat *ret_status,
                                struct arrow_table **ret_table) {
        struct why detail;
        int r;

        *ret_fd = listed_open(pass->root_fd, pass->files->root, name, &pass->settled_ns, ret_status, pass->why);
        if (*ret_fd < 0)
                return *ret_fd;
        r = open_table(pass, *ret_fd, (uint64_t)ret_status->st_size, ret_table, &detail);
        return r < 0 ? arrow_pass_in_file(pass, name, r, &detail) : 0;
}

/* A column that has no type in the first file gets that of a later one. */
static int arrow_pass_complete_schema(struct arrow_pass *pass) {
        const struct listed *listed = &pass->folder.listed;
        struct why detail;
        int r = 0;

        for (size_t i = 1; i < listed->n && r == 0 && arrow_schema_has_null(&pass->schema); i++) {
                _cleanup_(arrow_table_closep) struct arrow_table *table = NULL;
                _cleanup_(closep) int fd = -1;
                const char *name = listed->names[i];
                struct stat status;

                r = arrow_pass_open_file(pass, name, &fd, &status, &table);
                if (r < 0)
                        return r;
                r = arrow_schema_complete(&pass->schema, arrow_table_schema(table), &detail);
                r = r < 0 ? arrow_pass_in_file(pass, name, r, &detail) : arrow_pass_look_up(pass, 0);
        }
        return r;
}

int arrow_pass_open(struct arrow_pass *pass, const char *split, const char *fields) {
        _cleanup_(arrow_table_closep) struct arrow_table *first = NULL;
        _cleanup_(closep) int fd = -1;
        bool is_compressed = false;
        struct stat status;
        struct why detail;
        const char *name;
        int r = arrow_pass_find_files(pass, split);

        if (r < 0)
                return r;
        name = pass->folder.listed.names[0];
        r = arrow_pass_open_file(pass, name, &fd, &status, &first);
        if (r < 0)
                return r;
        r = arrow_table_next(first, &detail);
        is_compressed = r == 0 && arrow_table_batch(first)->compression != ARROW_PLAIN;
        if (r >= 0)
                r = arrow_schema_complete(&pass->schema, arrow_table_schema(first), &detail);
        if (r < 0)
                return arrow_pass_in_file(pass, name, r, &detail);
        r = arrow_pass_complete_schema(pass);
        if (r < 0)
                return r;
        r = arrow_columns_plan(&pass->columns, &pass->schema, pass->folder.info.root, fields, is_compressed,
                               pass->refusals, &detail);
        return r < 0 ? arrow_pass_in_file(pass, name, r, &detail) : 0;
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
                        why_set(&detail, r, "batch %" PRIu64 ": %s", arrow_table_idx_batch(table), inner.text);
                        return arrow_pass_in_file(pass, name, r, &detail);
                }
                *n_rows += n_here;
                r = arrow_pass_look_up(pass, *n_rows);
        }
        return r;
}

/* The host's list says how many rows each file has. */
static int arrow_pass_check_number(const struct arrow_pass *pass, uint64_t idx_file, uint64_t n, struct why *why) {
        if (!pass->host || pass->host->n_rows[idx_file] == n)
                return ARROW_END;
        return why_set(why, -EBADMSG, "has %" PRIu64 " rows, and %s says %" PRIu64 "; copy the files again", n,
                       pass->host->list, pass->host->n_rows[idx_file]);
}

static int run_file(struct arrow_pass *pass, const struct arrow_visitor *visitor, uint64_t idx_file, const char *name,
                    uint64_t *n_rows, struct stat *ret_status) {
        _cleanup_(arrow_table_closep) struct arrow_table *table = NULL;
        _cleanup_(closep) int fd = -1;
        uint64_t n_before = *n_rows;
        struct why detail;
        int r;

        r = arrow_pass_open_file(pass, name, &fd, ret_status, &table);
        if (r < 0)
                return r;
        r = arrow_columns_find(&pass->columns, &pass->schema, arrow_table_schema(table), pass->refusals, &detail);
        if (r == 0 && !visitor->rows)
                return 0;
        if (r == 0 && visitor->file)
                r = visitor->file(visitor->userdata, name, ret_status, &detail);
        while (r == 0 && (r = arrow_table_next(table, &detail)) == 0) {
                r = run_batch(pass, visitor, table, name, n_rows);
                if (r < 0)
                        return r;
        }
        if (r == ARROW_END)
                r = arrow_pass_check_number(pass, idx_file, *n_rows - n_before, &detail);
        return r == ARROW_END ? 0 : arrow_pass_in_file(pass, name, r, &detail);
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* A pass that is under way. What is said here as `of all` does not change. */
struct running {
        struct arrow_pass *pass;
        const struct arrow_visitor *visitor; /* of all */
        struct arrow_pass copy;              /* of all: the pass as it was at first */
        uint64_t n_rows;
        struct seen seen; /* file by file */
};

/* What another thread has found in a file. */
struct part {
        struct arrow_pass pass;
        struct index_watch watch;
        struct why why;
        struct arrow_visitor *visitor;
        void (*free)(struct arrow_visitor *visitor);
        struct stat status;
        uint64_t n_rows;
};

static struct arrow_column *arrow_pass_copy_columns(const struct arrow_columns *columns) {
        struct arrow_column *all = calloc(columns->n + 1, sizeof(*all));

        if (all)
                memcpy(all, columns->all, columns->n * sizeof(*all));
        return all;
}

static void arrow_pass_part_free(void *found) {
        struct part *part = found;

        if (part->visitor)
                part->free(part->visitor);
        free(part->pass.columns.all);
        free(part);
}

static struct part *arrow_pass_part_new(const struct running *running, const atomic_bool *is_over) {
        struct part *part = calloc(1, sizeof(*part));

        if (!part)
                return NULL;
        part->pass = running->copy;
        part->pass.why = &part->why;
        part->pass.refusals = NULL;
        part->pass.watch = &part->watch;
        part->pass.is_over = is_over;
        if (running->copy.watch)
                part->watch = *running->copy.watch;
        part->watch.part = NULL;
        part->watch.progress = NULL; /* only the caller's thread tells how far it is */
        part->free = running->visitor->free;
        part->pass.columns.all = arrow_pass_copy_columns(&running->copy.columns);
        if (part->pass.columns.all)
                part->visitor = running->visitor->make(running->visitor->userdata, &part->pass);
        if (!part->visitor) {
                arrow_pass_part_free(part);
                return NULL;
        }
        return part;
}

static void *arrow_pass_look_at_file(void *userdata, uint64_t idx_file, const atomic_bool *is_over) {
        const struct running *running = userdata;
        struct part *part = arrow_pass_part_new(running, is_over);

        if (part && run_file(&part->pass, part->visitor, idx_file, running->copy.folder.listed.names[idx_file],
                             &part->n_rows, &part->status) < 0) {
                arrow_pass_part_free(part);
                part = NULL;
        }
        if (part && running->visitor->rest)
                running->visitor->rest(part->visitor);
        return part;
}

static int arrow_pass_take_part(struct running *running, const char *name, const struct part *part,
                                struct stat *ret_status) {
        struct why detail;
        int r = running->visitor->take(running->visitor->userdata, part->visitor, name, &part->status, &detail);

        if (r < 0)
                return arrow_pass_in_file(running->pass, name, r, &detail);
        if (r == ARROW_AGAIN)
                return r;
        running->n_rows += part->n_rows;
        *ret_status = part->status;
        return arrow_pass_look_up(running->pass, running->n_rows);
}

static int arrow_pass_take_file(void *userdata, uint64_t idx_file, const void *found) {
        struct running *running = userdata;
        const char *name = running->copy.folder.listed.names[idx_file];
        struct stat status;
        int r = found ? arrow_pass_take_part(running, name, found, &status) : ARROW_AGAIN;

        if (r == ARROW_AGAIN)
                r = run_file(running->pass, running->visitor, idx_file, name, &running->n_rows, &status);
        if (r == 0) {
                seen_file(&running->seen, (uint64_t)status.st_size);
                seen_add(&running->seen, (uint64_t)status.st_size);
                seen_tell(&running->seen, running->pass->watch);
        }
        return r;
}

/* ---- all files --------------------------------------------------------------------------------------------------- */

static void arrow_pass_running_fini(struct running *running) {
        free(running->copy.columns.all);
}

int arrow_pass_run(struct arrow_pass *pass, const struct arrow_visitor *visitor) {
        _cleanup_(arrow_pass_running_fini) struct running running = { .pass = pass, .visitor = visitor, .copy = *pass };
        size_t n = pass->folder.listed.n;
        int r;

        seen_begin(&running.seen, n);
        why_set(pass->why, -ENOMEM, "%s: no memory to read it", pass->files->root); /* unless more is said */
        running.copy.columns.all = arrow_pass_copy_columns(&pass->columns);
        if (!running.copy.columns.all)
                return -ENOMEM;
        r = parted_run(&(struct parted){ .n = n,
                                         .look = visitor->make ? arrow_pass_look_at_file : NULL,
                                         .take = arrow_pass_take_file,
                                         .free = arrow_pass_part_free,
                                         .userdata = &running });
        if (r == 0 && visitor->rows && running.n_rows == 0)
                r = why_set(pass->why, -ENOENT, "%s: its Arrow files have no rows", pass->files->root);
        return r;
}

void arrow_pass_fini(struct arrow_pass *pass) {
        arrow_columns_fini(&pass->columns);
        arrow_schema_fini(&pass->schema);
        arrow_folder_fini(&pass->folder);
}
