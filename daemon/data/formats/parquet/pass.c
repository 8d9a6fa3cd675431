#include "daemon/data/formats/parquet/pass.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/base/machine/file_stamp.h"
#include "daemon/data/files/listed.h"
#include "daemon/data/files/parted.h"
#include "daemon/data/files/seen.h"
#include "daemon/data/formats/copied.h"
#include "daemon/data/formats/differing/columns_map.h"
#include "proto/base/cleanup.h"

static int pass_in_file(const struct parquet_pass *pass, const char *name, int error, const struct why *detail) {
        return why_set(pass->why, error, "%s/%s: %s", pass->files->root, name, detail->text);
}

int parquet_pass_look_up(struct parquet_pass *pass, uint64_t n_rows, struct why *why) {
        const struct index_watch *watch = pass->watch;

        pass->n_rows += n_rows;
        if (pass->is_over && atomic_load_explicit(pass->is_over, memory_order_relaxed))
                return why_set(why, -ECANCELED, "another part was refused");
        if (watch && watch->cancel && atomic_load_explicit(watch->cancel, memory_order_relaxed))
                return why_set(why, -ECANCELED, "indexing was cancelled");
        if (watch && watch->progress)
                watch->progress(watch->userdata, pass->n_rows);
        return 0;
}

static bool is_parquet(const char *name) {
        const char *dot = strrchr(name, '.');

        return name[0] != '.' && dot && strcmp(dot, ".parquet") == 0;
}

const struct shards_kind PARQUET_SHARDS = {
        .what = "Parquet file",
        .pattern = "*.parquet",
        .path = "a folder of .parquet files, or of one folder that has them, or such a file, or a pattern; split = "
                "\"train\" chooses train-*.parquet or a folder \"train\"",
        .is_taken = is_parquet,
        .begins_so = true,
};

/* Opens a file and reads its footer. Returns 0 or an errno, with `why` of the pass. */
static int read_footer(struct parquet_pass *pass, const char *name, struct parquet_footer *footer) {
        _cleanup_(closep) int fd = -1;
        struct stat status;
        struct why detail;
        int r;

        fd = listed_open(pass->root_fd, pass->files->root, name, &pass->settled_ns, &status, pass->why);
        if (fd < 0)
                return fd;
        r = parquet_footer_read(fd, (uint64_t)status.st_size, footer, &detail);
        return r < 0 ? pass_in_file(pass, name, r, &detail) : 0;
}

/* A column that has no type in the first file gets that of a later one. */
static int pass_complete_schema(struct parquet_pass *pass) {
        struct why detail;
        int r = 0;

        for (size_t i = 1; i < pass->listed.n && r == 0 && parquet_schema_has_null(&pass->first.schema); i++) {
                _cleanup_(parquet_footer_fini) struct parquet_footer footer = { 0 };
                const char *name = pass->listed.names[i];

                r = read_footer(pass, name, &footer);
                if (r < 0)
                        return r;
                r = parquet_schema_complete(&pass->first.schema, &footer.schema, &detail);
                if (r == 0)
                        r = parquet_pass_look_up(pass, 0, &detail);
                if (r < 0)
                        return pass_in_file(pass, name, r, &detail);
        }
        return r;
}

int parquet_pass_open(struct parquet_pass *pass, const char *split, const char *fields) {
        struct why detail;
        const char *name;
        int r = shards_find(&pass->listed, pass->root_fd, pass->files, &PARQUET_SHARDS, split, &pass->settled_ns,
                            pass->why);

        if (r < 0)
                return r;
        name = pass->listed.names[0];
        r = read_footer(pass, name, &pass->first);
        if (r == 0)
                r = pass_complete_schema(pass);
        if (r < 0)
                return r;
        r = parquet_columns_plan(&pass->columns, &pass->first, fields, pass->refusals, &detail);
        return r < 0 ? pass_in_file(pass, name, r, &detail) : 0;
}

uint64_t parquet_pass_page_bytes(const struct parquet_pass *pass) {
        uint64_t n_bytes = PARQUET_MEMORY_OF(index_watch_max_copied(pass->watch));

        return pass->is_over ? n_bytes / (COPIED_PARTS * PARTED_THREADS) + 1 : n_bytes;
}

int parquet_group_leaf(const struct parquet_group *group, uint32_t idx_element, uint32_t *ret_idx_element,
                       struct why *why) {
        if (group->map[idx_element] == COLUMN_OTHER)
                return why_set(why, -ENOTSUP, "is of another type than in the first file; write all files in one way");
        *ret_idx_element = group->map[idx_element];
        return 0;
}

int parquet_group_begin(const struct parquet_group *group, uint32_t idx_element, struct parquet_reader *reader,
                        struct why *why) {
        uint32_t idx;
        int r = parquet_group_leaf(group, idx_element, &idx, why);

        if (r < 0)
                return r;
        reader->fd = group->fd;
        if (idx != COLUMN_NONE)
                return parquet_reader_begin(reader, group->footer, idx,
                                            &group->chunks[parquet_element(&group->footer->schema, idx)->idx_leaf],
                                            why);
        parquet_reader_begin_missing(reader);
        return 0;
}

/* ---- a piece: some row groups of a file -------------------------------------------------------------------------- */

/* A pass that is under way. What is said here as `of all` does not change. */
struct running {
        struct parquet_pass *pass;
        const struct parquet_visitor *visitor;
        struct parquet_pass copy; /* of all: the pass as it was at first */
        uint64_t n_cut;           /* of all: pieces of a file */
        uint64_t n_begun;         /* files of which a piece was taken */
        struct stat status;       /* of the last of them, as it was then */
        uint64_t n_rows;          /* of all of them */
        struct seen seen;         /* piece by piece */
};

/* What another thread has found in a piece. */
struct part {
        struct parquet_pass pass;
        struct index_watch watch;
        struct why why;
        struct parquet_visitor *visitor;
        void (*free)(struct parquet_visitor *visitor);
        struct stat status;
        uint64_t n_file; /* rows of the file */
};

static int run_group(const struct parquet_visitor *visitor, const struct parquet_group *group, uint64_t idx_group,
                     struct parquet_chunk *chunks, struct why *why) {
        struct why detail;
        int r;

        if (group->n_rows == 0)
                return 0;
        r = parquet_footer_chunks(group->footer, idx_group, chunks, &detail);
        if (r == 0)
                r = visitor->group(visitor->userdata, group, &detail);
        return r < 0 ? why_set(why, r, "row group %" PRIu64 ": %s", idx_group, detail.text) : 0;
}

/* The row groups of part `idx` of n_cut. */
static int run_groups(const struct parquet_visitor *visitor, int fd, const struct parquet_schema *first,
                      const struct parquet_footer *footer, uint64_t idx, uint64_t n_cut, struct why *why) {
        _cleanup_(freep) uint32_t *map = calloc(first->n_elements, sizeof(*map));
        _cleanup_(freep) struct parquet_chunk *chunks = calloc(footer->schema.n_leaves + 1, sizeof(*chunks));
        uint64_t end = (idx + 1) * footer->n_groups / n_cut;
        struct parquet_group group = { .fd = fd, .footer = footer, .map = map, .chunks = chunks };
        int r = 0;

        if (!chunks || !map)
                return why_set(why, -ENOMEM, "no memory for its columns");
        if (!parquet_schema_map(first, &footer->schema, map))
                return why_set(why, -EINVAL, "has none of the columns that the first file has");
        for (uint64_t i = 0; i < end && r == 0; i++, group.first_row += group.n_rows) {
                group.n_rows = parquet_footer_rows(footer, i);
                if (i >= idx * footer->n_groups / n_cut)
                        r = run_group(visitor, &group, i, chunks, why);
        }
        return r;
}

/* In the caller's thread: the first piece of a file begins it, and the others must be of the same file. Returns 0;
 * PARQUET_AGAIN: they are not; or an errno with `why`. */
static int pass_begin_file(struct running *running, uint64_t idx_file, const struct stat *status, uint64_t n_rows,
                           struct why *why) {
        const struct parquet_visitor *visitor = running->visitor;

        if (running->n_begun > idx_file)
                return file_is_same(status, &running->status) ? 0 : PARQUET_AGAIN;
        running->n_begun++;
        running->status = *status;
        running->n_rows += n_rows;
        return visitor->file ? visitor->file(visitor->userdata, running->copy.listed.names[idx_file], status, why) : 0;
}

static int run_footer(const struct running *running, uint64_t piece, int fd, const struct stat *status,
                      struct running *ours, struct part *part, struct why *why) {
        _cleanup_(parquet_footer_fini) struct parquet_footer footer = { 0 };
        const struct parquet_visitor *visitor = part ? part->visitor : running->visitor;
        uint64_t idx_file = piece / running->n_cut;
        int r = parquet_footer_read(fd, (uint64_t)status->st_size, &footer, why);

        if (r < 0)
                return r;
        if (ours)
                r = pass_begin_file(ours, idx_file, status, footer.n_rows, why);
        else if (visitor->file)
                r = visitor->file(visitor->userdata, running->copy.listed.names[idx_file], status, why);
        if (part)
                part->n_file = footer.n_rows;
        if (r == PARQUET_AGAIN)
                return why_set(why, -ESTALE, "has changed while it was read; try again");
        return r == 0 ? run_groups(visitor, fd, &running->copy.first.schema, &footer, piece % running->n_cut,
                                   running->n_cut, why)
                      : r;
}

/* Visits a piece: for `part`, or, in the caller's thread, for the pass itself. */
static int run_piece(const struct running *running, uint64_t piece, struct running *ours, struct part *part) {
        struct parquet_pass *pass = part ? &part->pass : running->pass;
        const char *name = running->copy.listed.names[piece / running->n_cut];
        _cleanup_(closep) int fd = -1;
        struct stat status;
        struct why detail;
        int r;

        fd = listed_open(pass->root_fd, pass->files->root, name, &pass->settled_ns, &status, pass->why);
        if (fd < 0)
                return fd;
        if (part)
                part->status = status;
        r = run_footer(running, piece, fd, &status, ours, part, &detail);
        return r < 0 ? pass_in_file(pass, name, r, &detail) : 0;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void pass_part_free(void *found) {
        struct part *part = found;

        if (part->visitor)
                part->free(part->visitor);
        free(part->pass.columns.all);
        free(part);
}

static struct part *pass_part_new(const struct running *running, const atomic_bool *is_over) {
        const struct parquet_columns *columns = &running->copy.columns;
        struct part *part = calloc(1, sizeof(*part));

        if (!part)
                return NULL;
        part->pass = running->copy;
        part->pass.why = &part->why;
        part->pass.refusals = NULL;
        part->pass.watch = &part->watch;
        part->pass.n_rows = 0;
        part->pass.is_over = is_over;
        if (running->copy.watch)
                part->watch = *running->copy.watch;
        part->watch.progress = NULL;
        part->watch.part = NULL;
        part->free = running->visitor->free;
        part->pass.columns.all = calloc(columns->n + 1, sizeof(*columns->all));
        if (part->pass.columns.all) {
                memcpy(part->pass.columns.all, columns->all, columns->n * sizeof(*columns->all));
                part->visitor = running->visitor->make(running->visitor->userdata, &part->pass);
        }
        if (!part->visitor) {
                pass_part_free(part);
                return NULL;
        }
        return part;
}

static void *look_at_piece(void *userdata, uint64_t piece, const atomic_bool *is_over) {
        const struct running *running = userdata;
        struct part *part = pass_part_new(running, is_over);

        if (part && run_piece(running, piece, NULL, part) < 0) {
                pass_part_free(part);
                part = NULL;
        }
        if (part && running->visitor->rest)
                running->visitor->rest(part->visitor);
        return part;
}

static int pass_take_part(struct running *running, uint64_t piece, const struct part *part) {
        uint64_t idx_file = piece / running->n_cut;
        struct parquet_pass *pass = running->pass;
        struct why detail;
        int r = pass_begin_file(running, idx_file, &part->status, part->n_file, &detail);

        if (r == 0)
                r = running->visitor->take(running->visitor->userdata, part->visitor, &detail);
        if (r == 0)
                r = parquet_pass_look_up(pass, part->pass.n_rows, &detail);
        return r < 0 ? pass_in_file(pass, running->copy.listed.names[idx_file], r, &detail) : r;
}

static int pass_take_piece(void *userdata, uint64_t piece, const void *found) {
        struct running *running = userdata;
        uint64_t n_begun = running->n_begun;
        int r = found ? pass_take_part(running, piece, found) : PARQUET_AGAIN;

        if (r == PARQUET_AGAIN)
                r = run_piece(running, piece, running, NULL);
        if (r == 0) {
                if (running->n_begun > n_begun)
                        seen_file(&running->seen, (uint64_t)running->status.st_size);
                seen_add(&running->seen, (uint64_t)running->status.st_size / running->n_cut);
                seen_tell(&running->seen, running->pass->watch);
        }
        return r;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* What threads look at must not change while they do. */
static int running_begin(struct running *running, struct why *why) {
        struct parquet_pass *pass = running->pass;

        running->copy = *pass;
        running->copy.columns.all = calloc(pass->columns.n + 1, sizeof(*pass->columns.all));
        if (!running->copy.columns.all)
                return why_set(why, -ENOMEM, "%s: no memory for its columns", pass->files->root);
        memcpy(running->copy.columns.all, pass->columns.all, pass->columns.n * sizeof(*pass->columns.all));
        return 0;
}

static void pass_running_fini(struct running *running) {
        free(running->copy.columns.all);
}

int parquet_pass_run(struct parquet_pass *pass, const struct parquet_visitor *visitor) {
        _cleanup_(pass_running_fini) struct running running = { .pass = pass, .visitor = visitor };
        uint64_t n_files = pass->listed.n, n_pieces = visitor->make ? parted_pieces(n_files) : n_files;
        int r = running_begin(&running, pass->why);

        if (r < 0)
                return r;
        running.n_cut = n_files > 0 ? n_pieces / n_files : 1;
        seen_begin(&running.seen, n_files);
        why_set(pass->why, -ENOMEM, "%s: no memory to read it", pass->files->root); /* unless more is said */
        r = parted_run(&(struct parted){ .n = n_pieces,
                                         .look = visitor->make ? look_at_piece : NULL,
                                         .take = pass_take_piece,
                                         .free = pass_part_free,
                                         .userdata = &running });
        if (r == 0 && running.n_rows == 0)
                r = why_set(pass->why, -ENOENT, "%s: its Parquet files have no rows", pass->files->root);
        return r;
}

void parquet_pass_fini(struct parquet_pass *pass) {
        parquet_columns_fini(&pass->columns);
        parquet_footer_fini(&pass->first);
        listed_fini(&pass->listed);
}
