#include "daemon/data/formats/columnar/columnar.h"

/* The passes over the files. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/files/parted.h"
#include "daemon/data/files/seen.h"
#include "daemon/data/formats/columnar/columnar_columns.h"
#include "daemon/data/formats/columnar/columnar_fill.h"
#include "daemon/data/formats/copied.h"
#include "daemon/data/index/index_stamp.h"
#include "proto/base/cleanup.h"

/* A piece is to be visited again, by the caller's thread. */
#define AGAIN 1

static int columnar_in_file(const struct columnar_pass *pass, const char *name, int error, const struct why *detail) {
        return why_set(pass->why, error, "%s/%s: %s", pass->files->root, name, detail->text);
}

int columnar_look_up(struct columnar_pass *pass, uint64_t n_rows, struct why *why) {
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

uint64_t columnar_share(const struct columnar_pass *pass, uint64_t n_bytes) {
        return pass->is_over ? n_bytes / (COPIED_PARTS * CUTS_THREADS) + 1 : n_bytes;
}

/* ---- the dataset's schema ---------------------------------------------------------------------------------------- */

/* A column that has no type in the first file gets that of a later one. */
static int columnar_open_file(struct columnar_pass *pass, size_t idx_file, const char *fields) {
        const struct columnar_format *format = pass->format;
        const char *name = pass->listed->names[idx_file];
        _cleanup_(closep) int fd = -1;
        void *reading = NULL;
        struct stat status;
        struct why detail;
        int r;

        fd = listed_open(pass->root_fd, pass->files->root, name, &pass->settled_ns, &status, pass->why);
        if (fd < 0)
                return fd;
        r = format->open(pass, fd, (uint64_t)status.st_size, idx_file, 0, 1, &reading, &detail);
        if (r == 0)
                r = format->complete(pass->schema, format->schema(reading), &detail);
        if (r == 0)
                r = columnar_look_up(pass, 0, &detail);
        for (size_t i = 1; r == 0 && idx_file == 0 && i < pass->listed->n; i++) {
                if (!columns_have_null(format->type, format->range(pass->schema)))
                        break;
                r = columnar_open_file(pass, i, NULL);
                if (r < 0) {
                        format->close(reading);
                        return r;
                }
        }
        if (r == 0 && idx_file == 0)
                r = columnar_columns_plan(pass, reading, fields, &detail);
        if (reading)
                format->close(reading);
        return r < 0 ? columnar_in_file(pass, name, r, &detail) : 0;
}

/* ---- a piece: some rows of a file -------------------------------------------------------------------------------- */

/* A pass that is under way. What is said here as `of all` does not change. */
struct running {
        struct columnar_pass *pass;
        struct columnar_filling *filling; /* NULL: the first pass */
        struct columnar_pass copy;        /* of all: the pass as it was at first */
        uint64_t n_cut;                   /* of all: pieces of a file */
        bool is_schemas_only;             /* of all */
        uint64_t n_begun;                 /* files of which a piece was taken */
        uint64_t n_rows;                  /* that were visited */
        struct seen seen;                 /* piece by piece */
};

/* What another thread has found in a piece. */
struct part {
        struct columnar_pass pass;
        struct columnar_filling *filling;
        struct index_watch watch;
        struct why why;
        uint64_t n_rows;
};

/* What the rows say about each column. */
static int columnar_survey_rows(struct columnar_pass *pass, void *reading, const struct columnar_rows *rows,
                                struct why *why) {
        int damaged = 0, r = columnar_look_up(pass, 0, why);
        struct why detail;

        for (uint32_t i = 0; i < pass->columns.n && r == 0; i++) {
                struct columnar_column *column = &pass->columns.all[i];
                int error = 0;

                if (column->here.idx_field != COLUMN_NONE)
                        error = pass->format->survey(reading, column, &detail);
                else
                        column->n_absent += rows->n;
                if (error == 0)
                        continue;
                damaged = why_set(why, error, "column \"%s\": %s", column->field.name, detail.text);
                if (!refusals_mark_of_several(pass->refusals, column->field.name, error, why))
                        return error;
        }
        return r < 0 ? r : damaged;
}

static int columnar_visit_rows(struct columnar_pass *pass, struct columnar_filling *filling, void *reading,
                               uint64_t *n_rows, struct why *why) {
        struct columnar_rows rows;
        struct why detail;
        int r;

        while ((r = pass->format->next(reading, &rows, why)) == 0) {
                *n_rows += rows.n;
                r = filling ? columnar_fill_rows(filling, reading, &rows, &detail)
                            : columnar_survey_rows(pass, reading, &rows, &detail);
                if (r < 0)
                        return why_set(why, r, "%s %" PRIu64 ": %s", pass->format->unit, rows.idx, detail.text);
        }
        return r == COLUMNAR_END ? 0 : r;
}

/* In the caller's thread: the first piece of a file begins it, and the others must be of the same file. Returns 0;
 * AGAIN: they are not; or an errno with `why`. */
static int columnar_begin_file(struct running *running, uint64_t idx_file, const struct stat *status, struct why *why) {
        struct columnar_pass *pass = running->pass;

        if (running->n_begun > idx_file)
                return index_is_unchanged(&pass->status, status) ? 0 : AGAIN;
        running->n_begun++;
        pass->status = *status;
        seen_file(&running->seen, (uint64_t)status->st_size);
        return running->filling ? columnar_fill_file(running->filling, pass->listed->names[idx_file], status, why) : 0;
}

/* Visits a piece: for `part`, or, in the caller's thread, where `ours` is `running`, for the pass itself. */
static int columnar_visit(const struct running *running, uint64_t piece, struct running *ours, struct part *part) {
        struct columnar_pass *pass = part ? &part->pass : running->pass;
        struct columnar_filling *filling = part ? part->filling : running->filling;
        const struct columnar_format *format = pass->format;
        size_t idx_file = piece / running->n_cut;
        const char *name = pass->listed->names[idx_file];
        _cleanup_(closep) int fd = -1;
        void *reading = NULL;
        struct stat status;
        struct why detail;
        int r;

        fd = listed_open(pass->root_fd, pass->files->root, name, &pass->settled_ns, &status, pass->why);
        if (fd < 0)
                return fd;
        r = format->open(pass, fd, (uint64_t)status.st_size, idx_file, piece % running->n_cut, running->n_cut, &reading,
                         &detail);
        if (r == 0 && ours)
                r = columnar_begin_file(ours, idx_file, &status, &detail);
        else if (r == 0 && filling)
                r = columnar_fill_file(filling, name, &status, &detail);
        if (r == AGAIN)
                r = why_set(&detail, -ESTALE, "has changed while it was read; try again");
        if (r == 0)
                r = columnar_columns_find(pass, format->schema(reading), format->is_empty && format->is_empty(reading),
                                          &detail);
        if (r == 0 && !running->is_schemas_only)
                r = columnar_visit_rows(pass, filling, reading, part ? &part->n_rows : &ours->n_rows, &detail);
        if (reading)
                format->close(reading);
        pass->status = status;
        return r < 0 ? columnar_in_file(pass, name, r, &detail) : 0;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void columnar_part_free(void *found) {
        struct part *part = found;

        columnar_filling_free(part->filling);
        free(part->pass.columns.all);
        free(part);
}

static struct columnar_column *columnar_copy(const struct columnar_columns *columns) {
        struct columnar_column *all = calloc(columns->n + 1u, sizeof(*all));

        if (all)
                memcpy(all, columns->all, columns->n * sizeof(*all));
        return all;
}

static struct part *columnar_part_new(const struct running *running, const atomic_bool *is_over) {
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
        part->watch.progress = NULL; /* only the caller's thread tells how far it is */
        part->watch.part = NULL;
        part->pass.n_rows = 0;
        part->pass.columns.all = columnar_copy(&running->copy.columns);
        if (!part->pass.columns.all ||
            (running->filling && columnar_filling_new(&part->pass, running->filling, &part->filling) < 0)) {
                columnar_part_free(part);
                return NULL;
        }
        return part;
}

static void *columnar_look(void *userdata, uint64_t piece, const atomic_bool *is_over) {
        const struct running *running = userdata;
        struct part *part = columnar_part_new(running, is_over);

        if (part && columnar_visit(running, piece, NULL, part) < 0) {
                columnar_part_free(part);
                return NULL;
        }
        if (part && part->filling)
                columnar_filling_rest(part->filling);
        return part;
}

static int columnar_take_part(struct running *running, uint64_t piece, const struct part *part) {
        struct columnar_pass *pass = running->pass;
        uint64_t idx_file = piece / running->n_cut;
        struct why detail;
        int r = columnar_begin_file(running, idx_file, &part->pass.status, &detail);

        if (r == 0)
                r = running->filling ? columnar_fill_take(running->filling, part->filling, &detail)
                                     : !columnar_columns_add(&pass->columns, &part->pass.columns);
        if (r == 0) {
                running->n_rows += part->n_rows;
                r = columnar_look_up(pass, part->pass.n_rows, &detail);
        }
        return r < 0 ? columnar_in_file(pass, pass->listed->names[idx_file], r, &detail) : r;
}

static int columnar_take(void *userdata, uint64_t piece, const void *found) {
        struct running *running = userdata;
        int r = found ? columnar_take_part(running, piece, found) : AGAIN;

        if (r == AGAIN)
                r = columnar_visit(running, piece, running, NULL);
        if (r == 0) {
                seen_add(&running->seen, (uint64_t)running->pass->status.st_size / running->n_cut);
                seen_tell(&running->seen, running->pass->watch);
        }
        return r;
}

/* ---- a pass ------------------------------------------------------------------------------------------------------ */

/* Which file has which number depends on all rows before. */
static bool columnar_may_be_parted(const struct columnar_pass *pass) {
        for (uint32_t i = 0; i < pass->columns.n; i++)
                if (columnar_has_own_file(&pass->columns.all[i]))
                        return false;
        return true;
}

/* What threads look at must not change while they do: they have a copy. */
static int columnar_run(struct columnar_pass *pass, struct columnar_filling *filling, bool is_schemas_only) {
        struct running running = {
                .pass = pass, .filling = filling, .copy = *pass, .is_schemas_only = is_schemas_only
        };
        bool is_parted = !filling || columnar_may_be_parted(pass);
        uint64_t n_files = pass->listed->n, n = is_parted && pass->format->is_cut ? parted_pieces(n_files) : n_files;
        int r;

        running.n_cut = n_files > 0 ? n / n_files : 1;
        seen_begin(&running.seen, n_files);
        why_set(pass->why, -ENOMEM, "%s: no memory to read it", pass->files->root); /* unless more is said */
        running.copy.columns.all = columnar_copy(&pass->columns);
        if (!running.copy.columns.all)
                return -ENOMEM;
        r = parted_run(&(struct parted){ .n = n,
                                         .look = is_parted ? columnar_look : NULL,
                                         .take = columnar_take,
                                         .free = columnar_part_free,
                                         .userdata = &running });
        free(running.copy.columns.all);
        if (r == 0 && !is_schemas_only && running.n_rows == 0)
                r = why_set(pass->why, -ENOENT, "%s: its %s have no rows", pass->files->root, pass->format->files);
        return r;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static int columnar_survey(struct columnar_pass *pass) {
        bool is_needed = pass->format->is_surveyed;
        struct why detail;
        int r = 0;

        for (uint32_t i = 0; i < pass->columns.n; i++)
                is_needed = is_needed || pass->columns.all[i].is_surveyed;
        if (is_needed || pass->listed->n > 1)
                r = columnar_run(pass, NULL, !is_needed);
        if (r < 0)
                return r;
        r = columnar_columns_settle(pass, &detail);
        return r < 0 ? why_set(pass->why, r, "%s: %s", pass->files->root, detail.text) : 0;
}

int columnar_build(struct columnar_pass *pass, const char *fields, struct index_builder **ret_builder) {
        _cleanup_(columnar_filling_freep) struct columnar_filling *filling = NULL;
        int r = columnar_open_file(pass, 0, fields);

        if (r == 0)
                r = columnar_survey(pass);
        if (r < 0)
                return r;
        r = columnar_filling_new(pass, NULL, &filling);
        if (r < 0)
                return index_builder_refused(r, pass->files->root, pass->why);
        r = columnar_run(pass, filling, false);
        if (r == 0)
                *ret_builder = columnar_fill_take_builder(filling);
        return r;
}

void columnar_fini(struct columnar_pass *pass) {
        free(pass->columns.all);
        indexing_json_fini(&pass->columns.notes);
}
