#include "daemon/data/format.h"

/* The table of formats, by name. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/data/files/together.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/scanner.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"

static const struct format *const FORMATS[] = {
#define KIND(name) &format_##name,
#include "kinds/formats.h"
#undef KIND
};

int format_find(const char *name, const struct format **ret_format, struct why *why) {
        char known[256] = "auto";
        struct nearest nearest;

        if (strncmp(name, SCANNER_PREFIX, strlen(SCANNER_PREFIX)) == 0) {
                *ret_format = &plugged_format;
                return 0;
        }
        for (size_t i = 0; i < ARRAY_SIZE(FORMATS); i++) {
                size_t n = strlen(known);

                if (strcmp(name, FORMATS[i]->name) == 0) {
                        *ret_format = FORMATS[i];
                        return 0;
                }
                snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "", FORMATS[i]->name);
        }
        return why_set(why, -EINVAL, "unknown format \"%s\"%s; choose one of: %s, " SCANNER_PREFIX "NAME.FORMAT)", name,
                       nearest_in(&nearest, name, strlen(name), known), known);
}

const struct format *format_at(size_t idx) {
        return idx < ARRAY_SIZE(FORMATS) ? FORMATS[idx] : NULL;
}

int format_look_up(const struct index_watch *watch, uint64_t n_samples, const char *root, struct why *why) {
        if (watch && watch->cancel && atomic_load_explicit(watch->cancel, memory_order_relaxed))
                return why_set(why, -ECANCELED, "%s: indexing was cancelled", root);
        if (watch && watch->progress)
                watch->progress(watch->userdata, n_samples);
        return 0;
}

struct marking {
        struct index_builder *builder;
        int root_fd;
};

static int mark_one(void *userdata, uint32_t idx_thread, size_t mark, struct why *why) {
        const struct marking *marking = userdata;

        (void)idx_thread;
        return index_builder_mark(marking->builder, mark, marking->root_fd, why);
}

/* Two datasets of equal names and lengths are not the same if their bytes differ. */
static int mark_samples(struct index_builder *builder, int root_fd, const struct files *files,
                        const struct index_watch *watch, struct why *why) {
        struct marking marking = { builder, root_fd };
        struct index_watch quiet = { .cancel = watch ? watch->cancel : NULL };
        struct together together = { .look = mark_one, .userdata = &marking, .watch = watch ? &quiet : NULL };
        struct why detail;
        uint64_t n_marks;
        int r = index_builder_begin_marks(builder, &n_marks);

        if (r < 0)
                return why_errno(why, r, "%s: marks of its bytes", files->root);
        together.n_files = (size_t)n_marks;
        r = n_marks > 0 ? together_run(&together, &detail) : 0;
        return r < 0 ? why_set(why, r, "%s: %s", files->root, detail.text) : 0;
}

static int note_refusals(struct index_builder *builder, const struct refusals *refusals, struct why *why) {
        struct refusal one = { 0 };
        int r = 0;

        while (r == 0 && refusals_next(refusals, &one))
                r = index_builder_refuse(builder, &one);
        return r < 0 ? why_set(why, r, "%s", index_builder_text(r)) : 0;
}

/* The calling thread has joined an index. */
static int build_once(const struct format *format, int root_fd, const struct files *files,
                      const struct format_options *options, const struct index_watch *watch,
                      struct index_builder **ret_builder, struct why *why) {
        struct indexing *indexing = indexing_joined();
        int r;

        atomic_store(&indexing->n_hidden, 0);
        r = format->build(root_fd, files, options, watch, ret_builder, why);
        if (r == 0)
                index_builder_set_hidden(*ret_builder, atomic_load(&indexing->n_hidden));
        return r;
}

int format_build(const struct format *format, int root_fd, const struct files *files,
                 const struct format_options *options, const struct index_watch *watch,
                 struct index_builder **ret_builder, struct why *why) {
        _cleanup_(refusals_fini) struct refusals refusals = { 0 };
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        struct format_options ours = options ? *options : (struct format_options){ 0 };
        struct indexing own = { .cancel = watch ? watch->cancel : NULL }, *indexing = indexing_joined();
        struct why first = { 0 };
        int r, error = 0;

        ours.refusals = &refusals;
        if (!indexing)
                indexing_join(&own);
        while ((r = build_once(format, root_fd, files, &ours, watch, &builder, why)) < 0 &&
               refusals_settle(&refusals, r, why))
                if (error == 0) {
                        error = r;
                        first = *why;
                }
        indexing_join(indexing);
        if (r == -ENODATA && refusals.n == 1 && error < 0) { /* the one column that there is */
                *why = first;
                return error;
        }
        if (r == 0)
                r = mark_samples(builder, root_fd, files, watch, why);
        if (r == 0)
                r = note_refusals(builder, &refusals, why);
        if (r == 0)
                *ret_builder = TAKE_PTR(builder);
        return r;
}

int format_check_files(const struct format *format, const struct files *files, struct why *why) {
        if (files->n_names == 0 || format->takes_files)
                return 0;
        return why_set(why, -ENOTDIR,
                       "%s/%s is a file or a pattern of files; the path of a dataset of the format %s is a "
                       "folder",
                       files->root, files->names[0], format->name);
}
