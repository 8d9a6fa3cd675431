#include "daemon/data/formats/parquet/pass.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/data/files/listed.h"
#include "proto/base/cleanup.h"

static int in_file(const struct parquet_pass *pass, const char *name, int error, const struct why *detail) {
        return why_set(pass->why, error, "%.150s/%.150s: %.400s", pass->files->root, name, detail->text);
}

int parquet_pass_open(struct parquet_pass *pass, const char *split, const char *fields) {
        _cleanup_(closep) int fd = -1;
        struct stat status;
        struct why detail;
        const char *name;
        int r = parquet_folder_find(&pass->folder, pass->root_fd, pass->files, split, &pass->settled_ns, pass->why);

        if (r < 0)
                return r;
        name = (const char *)pass->folder.names.bytes;
        fd = listed_open(pass->root_fd, pass->files->root, name, &pass->settled_ns, &status, pass->why);
        if (fd < 0)
                return fd;
        r = parquet_footer_read(fd, (uint64_t)status.st_size, &pass->first, &detail);
        if (r == 0)
                r = parquet_columns_plan(&pass->columns, &pass->first, fields, &detail);
        return r < 0 ? in_file(pass, name, r, &detail) : 0;
}

int parquet_pass_look_up(struct parquet_pass *pass, uint64_t n_rows, struct why *why) {
        const struct index_watch *watch = pass->watch;

        pass->n_rows += n_rows;
        if (watch && watch->cancel && atomic_load_explicit(watch->cancel, memory_order_relaxed))
                return why_set(why, -ECANCELED, "indexing was cancelled");
        if (watch && watch->progress)
                watch->progress(watch->userdata, pass->n_rows);
        return 0;
}

int parquet_group_begin(const struct parquet_group *group, uint32_t idx_element, struct parquet_reader *reader,
                        struct why *why) {
        const struct parquet_element *element = parquet_element(&group->footer->schema, idx_element);

        reader->fd = group->fd;
        return parquet_reader_begin(reader, group->footer, idx_element, &group->chunks[element->idx_leaf], why);
}

static int run_group(const struct parquet_visitor *visitor, int fd, const struct parquet_footer *footer,
                     uint64_t idx_group, struct parquet_chunk *chunks, struct why *why) {
        const struct parquet_group group = {
                .fd = fd, .footer = footer, .chunks = chunks, .n_rows = parquet_footer_rows(footer, idx_group)
        };
        struct why detail;
        int r;

        if (group.n_rows == 0)
                return 0;
        r = parquet_footer_chunks(footer, idx_group, chunks, &detail);
        if (r == 0)
                r = visitor->group(visitor->userdata, &group, &detail);
        return r < 0 ? why_set(why, r, "row group %" PRIu64 ": %.380s", idx_group, detail.text) : 0;
}

static int run_footer(struct parquet_pass *pass, const struct parquet_visitor *visitor, const char *name, int fd,
                      const struct stat *status, struct parquet_footer *footer, struct why *why) {
        _cleanup_(freep) struct parquet_chunk *chunks = NULL;
        int r = parquet_footer_read(fd, (uint64_t)status->st_size, footer, why);

        if (r == 0)
                r = parquet_schema_compare(&footer->schema, &pass->first.schema, (const char *)pass->folder.names.bytes,
                                           why);
        if (r < 0)
                return r;
        chunks = calloc(footer->schema.n_leaves + 1, sizeof(*chunks));
        if (!chunks)
                return why_set(why, -ENOMEM, "no memory for its columns");
        if (visitor->file)
                r = visitor->file(visitor->userdata, name, status, why);
        for (uint64_t i = 0; i < footer->n_groups && r == 0; i++)
                r = run_group(visitor, fd, footer, i, chunks, why);
        return r;
}

static int run_file(struct parquet_pass *pass, const struct parquet_visitor *visitor, const char *name,
                    uint64_t *n_rows) {
        _cleanup_(closep) int fd = -1;
        _cleanup_(parquet_footer_fini) struct parquet_footer footer = { 0 };
        struct stat status;
        struct why detail;
        int r;

        fd = listed_open(pass->root_fd, pass->files->root, name, &pass->settled_ns, &status, pass->why);
        if (fd < 0)
                return fd;
        r = run_footer(pass, visitor, name, fd, &status, &footer, &detail);
        *n_rows += footer.n_rows;
        return r < 0 ? in_file(pass, name, r, &detail) : 0;
}

int parquet_pass_run(struct parquet_pass *pass, const struct parquet_visitor *visitor) {
        const char *name = (const char *)pass->folder.names.bytes;
        uint64_t n_rows = 0;
        int r = 0;

        for (uint64_t i = 0; i < pass->folder.n_files && r == 0; i++, name += strlen(name) + 1)
                r = run_file(pass, visitor, name, &n_rows);
        if (r == 0 && n_rows == 0)
                r = why_set(pass->why, -ENOENT, "%.300s: its Parquet files have no rows", pass->files->root);
        return r;
}

void parquet_pass_fini(struct parquet_pass *pass) {
        parquet_columns_fini(&pass->columns);
        parquet_footer_fini(&pass->first);
        parquet_folder_fini(&pass->folder);
}
