#include "daemon/data/arriving/arriving.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/log.h"
#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/read_error.h"
#include "daemon/base/threads/thread.h"
#include "daemon/data/arriving/arriving_private.h"
#include "daemon/data/index/index_draft.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/limits.h"
#include "proto/order/epoch_plan.h"

#define NUMBER_BITS 35u /* of a sample */
_Static_assert(UINT64_C(1) << NUMBER_BITS == DLP_NUMBERS_MAX, "");
#define TICK_NS 50000000ull

/* ---- its format -------------------------------------------------------------------------------------------------- */

static bool arriving_is_named_so(const struct format *format, const char *name) {
        const struct format_naming *row = format->names;

        if (!row && format->written)
                row = format->written->names;
        for (; row && row->part; row++)
                if (!row->is_file && (row->is_end ? text_ends_with(name, row->part) : strstr(name, row->part) != NULL))
                        return true;
        return false;
}

const struct format *arriving_format(const char *format, const char *name) {
        const struct format *found;

        for (size_t i = 0; (found = format_at(i)); i++)
                if (found->cut && arriving_is_named_so(found, name) &&
                    (!format || !format[0] || strcmp(format, "auto") == 0 || strcmp(format, found->name) == 0))
                        return found;
        return NULL;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static uint32_t bits_of(uint32_t n) {
        uint32_t bits = 0;

        while ((UINT64_C(1) << bits) < n)
                bits++;
        return bits;
}

/* As a sample's read does, it waits for an origin that does not answer. */
static int arriving_on_read(void *userdata, int fd, void *into, size_t n_bytes, uint64_t offset,
                            const atomic_bool *cancel) {
        struct arriving *arriving = userdata;
        const struct indexing_origin *origin = arriving->spec.origin;
        uint32_t n_failed = 0;
        int r;

        do
                r = origin->read(origin->userdata, fd, into, n_bytes, offset, cancel);
        while (r < 0 && arriving_waits(arriving, 0, r, ++n_failed));
        if (r >= 0 && n_failed > 0)
                arriving_waits(arriving, 0, 0, 0);
        return r;
}

static bool arriving_on_mark(void *userdata, int fd, uint64_t *ret_mark) {
        const struct indexing_origin *origin = ((struct arriving *)userdata)->spec.origin;

        return origin->mark(origin->userdata, fd, ret_mark);
}

static void arriving_on_wanted(void *userdata) {
        struct arriving *arriving = userdata;

        if (arriving->spec.wanted)
                arriving->spec.wanted(arriving->spec.userdata);
        else
                arriving_hurry(arriving);
}

int arriving_new(const struct arriving_spec *spec, struct arriving **ret_arriving) {
        struct arriving *arriving = calloc(1, sizeof(*arriving));

        if (!arriving)
                return -ENOMEM;
        pthread_mutex_init(&arriving->lock, NULL);
        pthread_cond_init(&arriving->changed, NULL);
        arriving->spec = *spec;
        arriving->root_fd = -1;
        arriving->spec.root = strdup(spec->root);
        snprintf(arriving->digest, sizeof(arriving->digest), "%s", spec->digest);
        arriving->files = calloc(spec->n, sizeof(*arriving->files));
        if (!arriving->files || !arriving->spec.root ||
            growth_new_blocks(spec->n, NUMBER_BITS - bits_of(spec->n), arriving_on_wanted, arriving,
                              &arriving->growth) < 0) {
                arriving->spec.names = NULL;
                arriving_free(arriving);
                return -ENOMEM;
        }
        arriving->source = (struct source){ .type = &ARRIVING_TYPE,
                                            .digest = arriving->digest,
                                            .n_samples = DLP_UNKNOWN,
                                            .n_shards = spec->n,
                                            .growth = arriving->growth };
        arriving->origin = (struct indexing_origin){ .read = arriving_on_read,
                                                     .mark = arriving_on_mark,
                                                     .digest = spec->origin ? spec->origin->digest : "",
                                                     .userdata = arriving };
        growth_want_block(arriving->growth, 0, 1, false);
        *ret_arriving = arriving;
        return 0;
}

void arriving_free(struct arriving *arriving) {
        if (!arriving)
                return;
        for (uint32_t i = 0; arriving->files && i < arriving->spec.n; i++)
                for (uint32_t k = 0; k < arriving->files[i].n_all; k++)
                        source_close(arriving->files[i].all[k]);
        for (uint32_t i = 0; arriving->spec.names && i < arriving->spec.n; i++)
                free(arriving->spec.names[i]);
        free(arriving->spec.names);
        free((char *)(uintptr_t)arriving->spec.root);
        closep(&arriving->root_fd);
        growth_unref(arriving->growth);
        pthread_mutex_destroy(&arriving->lock);
        pthread_cond_destroy(&arriving->changed);
        free(arriving->files);
        free(arriving->taken);
        free(arriving->numbers);
        free(arriving);
}

void arriving_first(const struct arriving *arriving, struct files *ret_files) {
        *ret_files = (struct files){ .root = arriving->spec.root,
                                     .names = (const char *const *)arriving->spec.names,
                                     .n_names = 1 };
}

int arriving_wait(struct arriving *arriving, const atomic_bool *cancel, struct why *why) {
        int r = 0;

        pthread_mutex_lock(&arriving->lock);
        while (!arriving->has_first && !arriving->first_failed.text[0] && !(cancel && atomic_load(cancel)))
                thread_wait_until(&arriving->changed, &arriving->lock, clock_now_ns() + TICK_NS);
        if (arriving->first_failed.text[0])
                r = why_set(why, -EBADMSG, "%s: %s", arriving->spec.root, arriving->first_failed.text);
        else if (!arriving->has_first)
                r = why_set(why, -ECANCELED, "%s: unpacking was cancelled", arriving->spec.root);
        pthread_mutex_unlock(&arriving->lock);
        return r;
}

/* ---- indices ----------------------------------------------------------------------------------------------------- */

static int build(struct arriving *arriving, uint32_t file, struct source **ret_source, struct why *why) {
        const struct files files = { .root = arriving->spec.root,
                                     .names = (const char *const *)&arriving->spec.names[file],
                                     .n_names = 1 };
        const struct index_watch watch = { .cancel = &arriving->is_over };
        struct indexing indexing = { .cancel = &arriving->is_over,
                                     .budget = arriving->budget,
                                     .is_refusing = ATOMIC_FLAG_INIT };
        const struct arrived_file *of = &arriving->files[file];
        struct index_builder *builder = NULL;
        int r;

        if (arriving->is_read_through) {
                indexing.origin = &arriving->origin;
                if (!of->is_whole)
                        indexing.cut = (struct indexing_cut){ .name = arriving->spec.names[file],
                                                              .n_bytes = of->n_whole,
                                                              .n_zeros = arriving->spec.format->n_cut_zeros };
        }
        indexing_join(&indexing);
        r = format_build(arriving->spec.format, arriving->root_fd, &files, &arriving->options, &watch, &builder, why);
        if (r == 0)
                r = index_in_memory(builder, arriving->spec.names[file], arriving->budget, ret_source, why);
        index_builder_free(builder);
        indexing_join(NULL);
        if (r == 0 && arriving->spec.format->extend)
                arriving->spec.format->extend(*ret_source);
        return r;
}

static void arriving_break(struct arriving *arriving, uint32_t idx, const struct why *why) {
        struct why named;

        if (atomic_load(&arriving->is_over))
                return;
        why_set(&named, 0, "%s/%s: %s", arriving->spec.root, arriving->spec.names[idx], why->text);
        log_error("dataset", "%s", named.text);
        arriving->files[idx].is_over = true;
        growth_fail(arriving->growth, &named);
}

static int check_index(const struct arriving *arriving, uint32_t idx, const struct source *source, struct why *why) {
        const struct arrived_file *file = &arriving->files[idx];

        if (file->n_all == ARRIVING_TIMES_MAX || source->n_samples < file->n_samples)
                return why_set(why, -EBADMSG, "it has changed while it was unpacked");
        if (source->n_samples >> growth_blocks(arriving->growth)->shift > 0)
                return why_set(why, -E2BIG,
                               "it has more than %llu samples, the most where there are %u files; take another order "
                               "than blocks",
                               (unsigned long long)1 << growth_blocks(arriving->growth)->shift, arriving->spec.n);
        return arriving_has_same_fields(arriving, source, why) ? 0 : -EBADMSG;
}

static void arriving_take(struct arriving *arriving, uint32_t idx, struct source *source, bool is_whole) {
        struct arrived_file *file = &arriving->files[idx];

        file->all[file->n_all++] = source;
        file->n_samples = source->n_samples;
        file->is_over = is_whole;
        atomic_store_explicit(&file->source, source, memory_order_release);
        growth_set_block(arriving->growth, idx, source->n_samples, is_whole);
}

/* The same files with other options are another dataset. */
static int arriving_add_options(struct arriving *arriving, struct why *why) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        char both[2 * sizeof(arriving->digest)];
        int n = snprintf(both, sizeof(both), "%s%s", arriving->digest, arriving->options.digest);

        if (!EVP_Digest(both, (size_t)n, digest, NULL, EVP_sha256(), NULL))
                return why_errno(why, -ENOMEM, "%s", arriving->spec.root);
        for (size_t i = 0; i < 32; i++)
                snprintf(arriving->digest + 2 * i, 3, "%02x", digest[i]);
        return 0;
}

int arriving_open(struct arriving *arriving, int root_fd, const struct format_options *options, struct budget *budget,
                  struct source **ret_source, struct why *why) {
        struct source *first = NULL;
        int r;

        if (arriving->root_fd < 0)
                arriving->root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
        if (arriving->root_fd < 0)
                return why_errno(why, -errno, "%s", arriving->spec.root);
        arriving->options = *options; /* whose texts stay, while its members change */
        arriving->budget = budget;
        r = arriving_add_options(arriving, why);
        if (r == 0)
                r = build(arriving, 0, &first, why);
        if (r == 0 && first->n_samples == 0) {
                source_close(first);
                r = why_set(why, -ENODATA, "%s/%s has no samples", arriving->spec.root, arriving->spec.names[0]);
        }
        if (r < 0)
                return r;
        arriving_describe(arriving, first);
        arriving_take(arriving, 0, first, false); /* if it is whole, whoever is at it says so again */
        pthread_mutex_lock(&arriving->lock);
        arriving->is_open = true;
        pthread_cond_broadcast(&arriving->changed);
        pthread_mutex_unlock(&arriving->lock);
        *ret_source = &arriving->source;
        return 0;
}

/* ---- the supply -------------------------------------------------------------------------------------------------- */

bool arriving_next(struct arriving *arriving, const _Atomic uint64_t *taken, const size_t *numbers,
                   size_t *ret_number) {
        uint32_t file;

        if (!growth_wanted_block(arriving->growth, taken, numbers, &file))
                return false;
        *ret_number = numbers[file];
        return true;
}

uint32_t arriving_cut(struct arriving *arriving, int fd, uint64_t n_bytes, uint64_t *whole) {
        *whole = arriving->spec.format->cut(fd, n_bytes, *whole);
        return arriving->spec.format->n_cut_zeros;
}

/* Until the first file says what the fields are, nothing goes on. */
static bool wait_for_opening(struct arriving *arriving, uint32_t idx) {
        bool is_open;

        pthread_mutex_lock(&arriving->lock);
        if (idx == 0)
                arriving->has_first = true;
        pthread_cond_broadcast(&arriving->changed);
        while (!arriving->is_open && !atomic_load(&arriving->is_over))
                pthread_cond_wait(&arriving->changed, &arriving->lock);
        is_open = arriving->is_open;
        pthread_mutex_unlock(&arriving->lock);
        return is_open;
}

/* Formats refuse a dataset without a sample, and this file may be one of many. */
static bool is_empty(const struct arriving *arriving, uint32_t idx, int error) {
        struct stat status;

        return error == -ENOENT && beneath_stat(arriving->root_fd, arriving->spec.names[idx], &status) == 0;
}

void arriving_grown(struct arriving *arriving, uint32_t idx, bool is_whole) {
        struct source *source = NULL;
        struct why why;
        int r;

        if (!wait_for_opening(arriving, idx) || arriving->files[idx].is_over)
                return;
        r = build(arriving, idx, &source, &why);
        if (r < 0 && is_whole && is_empty(arriving, idx, r)) {
                arriving->files[idx].is_over = true;
                growth_set_block(arriving->growth, idx, 0, true);
                return;
        }
        if (r < 0) {
                arriving_break(arriving, idx, &why);
                return;
        }
        if (check_index(arriving, idx, source, &why) < 0) {
                source_close(source);
                arriving_break(arriving, idx, &why);
                return;
        }
        arriving_take(arriving, idx, source, is_whole);
}

#define PAUSE_MIN_NS 100000000ull
#define PAUSES_MAX   6u /* of which each is twice as long */

static void arriving_pause(struct arriving *arriving, uint32_t n_before) {
        uint64_t until_ns = clock_now_ns() + (PAUSE_MIN_NS << (n_before < PAUSES_MAX ? n_before : PAUSES_MAX));

        pthread_mutex_lock(&arriving->lock);
        while (!atomic_load(&arriving->is_over) && clock_now_ns() < until_ns)
                thread_wait_until(&arriving->changed, &arriving->lock, until_ns);
        pthread_mutex_unlock(&arriving->lock);
}

bool arriving_waits(struct arriving *arriving, uint32_t idx, int error, uint32_t n_failed) {
        enum read_error kind = read_error_kind(error);
        const struct indexing_origin *origin = arriving->spec.origin;
        struct why why;
        bool may_wait;

        if (error == 0)
                growth_set_silent(arriving->growth, NULL);
        pthread_mutex_lock(&arriving->lock);
        may_wait = origin && error != 0 && (arriving->is_open || idx > 0) && !atomic_load(&arriving->is_over);
        pthread_mutex_unlock(&arriving->lock);
        if (!may_wait || kind == READ_ERROR_OWN || error == -ECANCELED || error == -ENOMEM)
                return false;
        if (origin->look(origin->userdata, &arriving->is_over, &why) < 0)
                growth_set_silent(arriving->growth, &why);
        else if (kind == READ_ERROR_CLEAR || (kind == READ_ERROR_VAGUE && n_failed >= READ_ERROR_TRIES))
                return false;
        arriving_pause(arriving, n_failed - 1);
        return !atomic_load(&arriving->is_over);
}

void arriving_failed(struct arriving *arriving, uint32_t idx, const struct why *why) {
        if (idx == 0) {
                pthread_mutex_lock(&arriving->lock);
                if (!arriving->is_open)
                        arriving->first_failed = *why;
                pthread_cond_broadcast(&arriving->changed);
                pthread_mutex_unlock(&arriving->lock);
        }
        arriving_break(arriving, idx, why);
}

void arriving_leave(struct arriving *arriving) {
        growth_leave_blocks(arriving->growth);
        pthread_mutex_lock(&arriving->lock);
        atomic_store(&arriving->is_over, true);
        pthread_cond_broadcast(&arriving->changed);
        pthread_mutex_unlock(&arriving->lock);
        arriving_stop_reading(arriving);
}
