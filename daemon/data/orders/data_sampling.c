#include "daemon/data/orders/data_sampling.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/data/orders/source_blocks.h"
#include "daemon/data/orders/source_column.h"
#include "proto/base/cleanup.h"
#include "proto/base/shown/shorten.h"
#include "proto/base/text.h"

/* ---- the trainer's columns -------------------------------------------------------------------------------------- */

/* Memory that its owner can still shorten or punch holes into ends the daemon with SIGBUS, and holes take pages of the
 * daemon's when they are read. Of hugetlbfs it cannot be asked where holes are, and without a page for one, a read of
 * it is a SIGBUS as well. */
static int check_memory(int fd, uint64_t *ret_n_bytes, struct why *why) {
        const int wanted = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
        int seals = fcntl(fd, F_GET_SEALS);
        off_t n_bytes, n_before_hole;
        struct statfs system;

        if (seals < 0 || (seals & wanted) != wanted)
                return why_set(why, -EINVAL,
                               "columns: they must be in a memfd that is sealed against writing, shrinking "
                               "and growing");
        if (fstatfs(fd, &system) < 0)
                return why_errno(why, -errno, "columns");
        if (system.f_type == HUGETLBFS_MAGIC)
                return why_set(
                        why, -EINVAL,
                        "columns: they lie in pages of hugetlb, which may be missing when they are read; make the "
                        "memfd without MFD_HUGETLB");
        n_bytes = lseek(fd, 0, SEEK_END);
        n_before_hole = n_bytes > 0 ? lseek(fd, 0, SEEK_HOLE) : 0; /* its end, if there is none */
        if (n_bytes < 0 || n_before_hole < 0)
                return why_errno(why, -errno, "columns");
        if (n_before_hole < n_bytes)
                return why_set(why, -EINVAL, "columns: their memory has holes; write all of it before it is sealed");
        *ret_n_bytes = (uint64_t)n_bytes;
        return 0;
}

static int check_column(const struct sampling_column *column, uint64_t n_bytes, struct why *why) {
        uint64_t each = dlp_column_takes(column->dtype) ? dlp_dtype_bytes(column->dtype) : 0, length, end;

        if (column->name[0] == '\0' || strlen(column->name) >= DLP_NAME_MAX || !text_is_name(column->name))
                return why_set(why, -EINVAL,
                               "columns: a name of 1 to %u bytes in UTF-8 without control characters is needed",
                               DLP_NAME_MAX - 1);
        if (each == 0)
                return why_set(why, -EINVAL, "columns: \"%s\": its dtype is not one of numbers", column->name);
        if (column->n_values == 0)
                return why_set(why, -EINVAL, "columns: \"%s\" has no values", column->name);
        if (column->offset % 8 > 0 || __builtin_mul_overflow(column->n_values, each, &length) ||
            __builtin_add_overflow(column->offset, length, &end) || end > n_bytes)
                return why_set(why, -EINVAL, "columns: \"%s\": %llu values at %llu do not lie within %llu bytes",
                               column->name, (unsigned long long)column->n_values, (unsigned long long)column->offset,
                               (unsigned long long)n_bytes);
        return 0;
}

static int check_once(const struct sampling_column *columns, uint32_t i, struct why *why) {
        for (uint32_t k = 0; k < i; k++)
                if (strcmp(columns[k].name, columns[i].name) == 0)
                        return why_set(why, -EINVAL, "columns: \"%s\" is given twice", columns[i].name);
        return 0;
}

static int data_sampling_take_columns(struct sampling *sampling, int fd, const struct sampling_column *columns,
                                      uint32_t n, struct why *why) {
        uint64_t n_bytes = 0;
        int r;

        if (n > SAMPLING_COLUMNS_MAX)
                return why_set(why, -EINVAL, "columns: %u; at most %u are allowed", n, SAMPLING_COLUMNS_MAX);
        r = check_memory(fd, &n_bytes, why);
        for (uint32_t i = 0; r == 0 && i < n; i++)
                r = check_column(&columns[i], n_bytes, why);
        for (uint32_t i = 1; r == 0 && i < n; i++)
                r = check_once(columns, i, why);
        if (r < 0)
                return r;
        sampling->given = mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (sampling->given == MAP_FAILED) {
                sampling->given = NULL;
                return why_errno(why, -errno, "columns");
        }
        sampling->n_given_bytes = n_bytes;
        for (uint32_t i = 0; i < n; i++) {
                snprintf(sampling->names[i], DLP_NAME_MAX, "%s", columns[i].name);
                sampling->columns[i] = (struct dlp_column){ .name = sampling->names[i],
                                                            .dtype = columns[i].dtype,
                                                            .values = (uint8_t *)sampling->given + columns[i].offset,
                                                            .n_values = columns[i].n_values,
                                                            .n_samples = columns[i].n_values };
        }
        sampling->n_columns = sampling->n_given = n;
        return 0;
}

/* ---- references ------------------------------------------------------------------------------------------------- */

int sampling_new(const char *text, int fd, const struct sampling_column *columns, uint32_t n,
                 struct sampling **ret_sampling, struct why *why) {
        struct sampling *sampling = calloc(1, sizeof(*sampling));
        int r;

        if (!sampling)
                return why_errno(why, -ENOMEM, "sampler");
        pthread_mutex_init(&sampling->lock, NULL);
        sampling->refs = 1;
        r = dlp_order_text_parse(text, &sampling->text, why);
        if (r == 0 && n > 0)
                r = data_sampling_take_columns(sampling, fd, columns, n, why);
        if (r < 0) {
                sampling_unref(sampling);
                return r;
        }
        *ret_sampling = sampling;
        return 0;
}

struct sampling *sampling_ref(struct sampling *sampling) {
        if (sampling)
                atomic_fetch_add_explicit(&sampling->refs, 1, memory_order_relaxed);
        return sampling;
}

static void free_owned(struct sampling *sampling) {
        for (uint32_t i = 0; i < sampling->n_owned; i++)
                free(sampling->owned[i]);
        sampling->n_owned = 0;
        free((uint64_t *)(uintptr_t)sampling->blocks.ends);
        sampling->blocks = (struct dlp_blocks){ .n = 0 };
        sampling->n_columns = sampling->n_given;
        if (sampling->budget)
                budget_release(sampling->budget, sampling->n_charged_bytes);
        sampling->budget = NULL;
        sampling->n_charged_bytes = 0;
}

static void data_sampling_free_now(void *userdata) {
        struct sampling *sampling = userdata;

        free_owned(sampling);
        if (sampling->given)
                sweeper_unmap(sampling->given, sampling->n_given_bytes);
        pthread_mutex_destroy(&sampling->lock);
        free(sampling);
}

void sampling_unref(struct sampling *sampling) {
        if (sampling && atomic_fetch_sub_explicit(&sampling->refs, 1, memory_order_acq_rel) == 1)
                sweeper_free(&sampling->sweep, sampling->n_given_bytes + sampling->n_charged_bytes,
                             data_sampling_free_now, sampling);
}

uint64_t sampling_unit_max(const struct sampling *sampling, uint32_t batch_size) {
        const struct dlp_step *grouper = dlp_order_text_grouper(&sampling->text);
        const struct dlp_making_terms terms = { .batch_size = batch_size,
                                                .columns = sampling->columns,
                                                .n_columns = sampling->n_columns };

        return grouper ? grouper->type->n_unit_max(grouper, &terms) : 1;
}

uint32_t sampling_length(const struct sampling *sampling, uint64_t sample) {
        const struct dlp_step *grouper = dlp_order_text_grouper(&sampling->text);
        struct dlp_column_wish wish;

        if (!grouper || dlp_step_columns(grouper, &wish, 1) == 0)
                return 0;
        for (uint32_t i = 0; i < sampling->n_columns; i++)
                if (strcmp(sampling->columns[i].name, wish.name) == 0)
                        return (uint32_t)dlp_column_whole(&sampling->columns[i], sample);
        return 0;
}

/* ---- the dataset's columns -------------------------------------------------------------------------------------- */

static bool data_sampling_has_column(const struct sampling *sampling, const char *name) {
        for (uint32_t i = 0; i < sampling->n_columns; i++)
                if (strcmp(sampling->columns[i].name, name) == 0)
                        return true;
        return false;
}

int sampling_check(const struct sampling *sampling, const struct source *source, struct why *why) {
        struct dlp_column_wish wishes[DLP_ORDER_STEPS_MAX * DLP_ARGUMENTS_MAX];
        uint32_t n = dlp_order_text_columns(&sampling->text, wishes, DLP_ORDER_STEPS_MAX * DLP_ARGUMENTS_MAX), field;

        for (uint32_t i = 0; i < n; i++)
                if (!data_sampling_has_column(sampling, wishes[i].name)) {
                        int r = source_column_find(source, &wishes[i], &field, why);

                        if (r < 0)
                                return r;
                }
        return 0;
}

/* Reads one column; its memory is paid for first. */
static int load_column(struct sampling *sampling, const struct source *source, const struct dlp_column_wish *wish,
                       struct why *why) {
        struct dlp_column *column = &sampling->columns[sampling->n_columns];
        uint64_t n_bytes;
        uint32_t field;
        char what[DLP_NAME_MAX + 32];
        int r;

        if (sampling->n_columns == SAMPLING_COLUMNS_MAX)
                return why_set(why, -EINVAL, "sampler: more than %u columns", SAMPLING_COLUMNS_MAX);
        r = source_column_find(source, wish, &field, why);
        if (r < 0)
                return r;
        shorten(what, sizeof(what), "the column \"%s\" of the sampler", wish->name);
        r = source_column_bytes(source, field, wish->is_lengths, &n_bytes);
        if (r < 0)
                return why_errno(why, r, "%s", what);
        r = budget_reserve(sampling->budget, n_bytes, what, why);
        if (r < 0)
                return r;
        sampling->n_charged_bytes += n_bytes;
        r = source_column_read(source, field, wish->is_lengths, column);
        if (r < 0)
                return why_errno(why, r, "%s", what);
        column->name = wish->name;
        sampling->owned[sampling->n_owned++] = (void *)(uintptr_t)column->values;
        sampling->owned[sampling->n_owned++] = (void *)(uintptr_t)column->ends;
        sampling->n_columns++;
        return 0;
}

/* With names of their own: an order may still be made when its job has left, and the source with it. */
static int load_parts(struct sampling *sampling, const struct source *source, struct why *why) {
        for (uint32_t i = 0; i < source->n_parts; i++) {
                char *name = strdup(source->parts[i].name);

                if (!name)
                        return why_errno(why, -ENOMEM, "sampler");
                sampling->owned[sampling->n_owned++] = name;
                sampling->parts[i] = (struct dlp_part){ .name = name,
                                                        .first = source->parts[i].first,
                                                        .n_samples = source->parts[i].source->n_samples };
        }
        sampling->n_parts = source->n_parts;
        return 0;
}

static int load_blocks(struct sampling *sampling, const struct source *source, struct why *why) {
        int r = source_blocks_find(source, sampling->budget, &sampling->blocks, why);

        if (r < 0)
                return r;
        sampling->n_charged_bytes += sampling->blocks.n * sizeof(*sampling->blocks.ends);
        r = source_blocks_digest(&sampling->blocks, sampling->blocks_digest);
        return r < 0 ? why_errno(why, r, "order") : 0;
}

static int data_sampling_load(struct sampling *sampling, const struct source *source, struct why *why) {
        struct dlp_column_wish wishes[DLP_ORDER_STEPS_MAX * DLP_ARGUMENTS_MAX];
        uint32_t n = dlp_order_text_columns(&sampling->text, wishes, DLP_ORDER_STEPS_MAX * DLP_ARGUMENTS_MAX);
        int r = load_parts(sampling, source, why);

        for (uint32_t i = 0; r == 0 && i < n; i++)
                if (!data_sampling_has_column(sampling, wishes[i].name))
                        r = load_column(sampling, source, &wishes[i], why);
        if (r == 0 && sampling->wants_blocks && source->n_samples > 0)
                r = load_blocks(sampling, source, why);
        return r;
}

int sampling_load(struct sampling *sampling, const struct source *source, struct budget *budget, struct why *why) {
        int r = 0;

        pthread_mutex_lock(&sampling->lock);
        if (!sampling->is_loaded) {
                sampling->budget = budget;
                r = data_sampling_load(sampling, source, why);
                if (r < 0)
                        free_owned(sampling);
                else
                        sampling->is_loaded = true;
        }
        pthread_mutex_unlock(&sampling->lock);
        return r;
}
