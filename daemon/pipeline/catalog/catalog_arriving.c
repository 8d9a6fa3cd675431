/* Files that are served in the order of blocks while the rest of them is still unpacked, or, if they lie elsewhere as
 * they are, read through.
 *
 * An entry has such a dataset beside the other one, which serves all other orders once all is unpacked: it has other
 * numbers of samples. So a job of blocks is always served from this one, in the next run as well. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/cpus.h"
#include "daemon/base/work/errand.h"
#include "daemon/data/arriving/arriving.h"
#include "daemon/data/files/splits.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/growing.h"
#include "daemon/data/growth.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/scanner.h"
#include "daemon/pipeline/catalog/catalog_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

/* The unpacked files that are blocks, by their paths. */
struct arrival {
        struct arriving *arriving;
        struct unpacked *unpacked; /* NULL: they are read where they are */
        uint32_t n;
        size_t *files;    /* of each block: its number among those that are unpacked */
        uint32_t *blocks; /* of each of these: its block, or n */
};

/* ---- what the threads that unpack ask and tell --------------------------------------------------------------------
 */

static bool arrival_next(void *userdata, const _Atomic uint64_t *taken, size_t *ret_file) {
        struct arrival *arrival = userdata;

        return arriving_next(arrival->arriving, taken, arrival->files, ret_file);
}

static uint32_t arrival_cut(void *userdata, size_t file, int fd, uint64_t n_bytes, uint64_t *whole) {
        struct arrival *arrival = userdata;

        (void)file;
        return arriving_cut(arrival->arriving, fd, n_bytes, whole);
}

static void arrival_grown(void *userdata, size_t file, bool is_whole) {
        struct arrival *arrival = userdata;

        arriving_grown(arrival->arriving, arrival->blocks[file], is_whole);
}

static bool arrival_waits(void *userdata, size_t file, int error, uint32_t n_failed) {
        struct arrival *arrival = userdata;

        return arriving_waits(arrival->arriving, arrival->blocks[file], error, n_failed);
}

static void arrival_failed(void *userdata, size_t file, const struct why *why) {
        struct arrival *arrival = userdata;

        if (arrival->blocks[file] < arrival->n)
                arriving_failed(arrival->arriving, arrival->blocks[file], why);
}

static void arrival_wanted(void *userdata) {
        unpacked_hurry(((struct arrival *)userdata)->unpacked);
}

/* ---- which files are blocks ---------------------------------------------------------------------------------------
 */

static int by_name(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void free_names(char **names, size_t n) {
        for (size_t i = 0; names && i < n; i++)
                free(names[i]);
        free(names);
}

/* Those that are not blocks are freed. */
static int sort_blocks(struct arrival *arrival, char **names, size_t n_files, const char *format) {
        char **sorted = calloc(n_files, sizeof(*sorted));

        if (!sorted)
                return -ENOMEM;
        memcpy(sorted, names, n_files * sizeof(*sorted));
        qsort(sorted, n_files, sizeof(*sorted), by_name);
        for (size_t i = 0; i < n_files; i++)
                if (arriving_format(format, sorted[i]))
                        sorted[arrival->n++] = sorted[i];
        for (size_t i = 0; i < n_files; i++)
                if (arriving_format(format, names[i]) && !unpacked_was_packed(arrival->unpacked, i))
                        arrival->n = 0; /* samples are there already */
        for (size_t i = 0; i < n_files; i++) {
                char **found = bsearch(&names[i], sorted, arrival->n, sizeof(*sorted), by_name);

                arrival->blocks[i] = found ? (uint32_t)(found - sorted) : arrival->n;
                if (found)
                        arrival->files[found - sorted] = i;
                else
                        free(names[i]);
        }
        memcpy(names, sorted, n_files * sizeof(*sorted));
        free(sorted);
        return 0;
}

/* A dataset's digest is of its content; this one is made before anybody has read that: of names and sizes, and of what
 * the origin says of them. */
static int make_digest(const struct arrival *arrival, char **names, const struct remote *remote, char ret_digest[65]) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        int is_fine = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) &&
                      EVP_DigestUpdate(context, "arriving", sizeof("arriving"));

        for (uint32_t b = 0; b < arrival->n && is_fine; b++) {
                char size[32] = "";
                int n = arrival->unpacked ? snprintf(size, sizeof(size), "%llu",
                                                     (unsigned long long)unpacked_file_bytes(arrival->unpacked,
                                                                                             arrival->files[b]))
                                          : 0; /* the origin says it */

                is_fine = EVP_DigestUpdate(context, names[b], strlen(names[b]) + 1) &&
                          EVP_DigestUpdate(context, size, (size_t)n + 1);
        }
        if (remote)
                is_fine = is_fine && EVP_DigestUpdate(context, cached_digest(remote->cached), 64);
        is_fine = is_fine && EVP_DigestFinal_ex(context, digest, NULL);
        EVP_MD_CTX_free(context);
        for (size_t i = 0; i < 32 && is_fine; i++)
                snprintf(ret_digest + 2 * i, 3, "%02x", digest[i]);
        return is_fine ? 0 : -ENOMEM;
}

static int find_blocks(struct arrival *arrival, const struct dataset_spec *spec, const struct remote *remote) {
        size_t n_files = unpacked_n_files(arrival->unpacked);
        char **names = calloc(n_files, sizeof(*names));
        char digest[65];
        int r = 0;

        arrival->files = calloc(n_files, sizeof(*arrival->files));
        arrival->blocks = calloc(n_files, sizeof(*arrival->blocks));
        if (!names || !arrival->files || !arrival->blocks)
                r = -ENOMEM;
        for (size_t i = 0; i < n_files && r == 0; i++) {
                names[i] = unpacked_file(arrival->unpacked, i);
                r = names[i] ? 0 : -ENOMEM;
        }
        if (r < 0) {
                free_names(names, names ? n_files : 0);
                return r;
        }
        r = sort_blocks(arrival, names, n_files, spec->format);
        if (r < 0) {
                free_names(names, n_files);
                return r;
        }
        if (arrival->n == 0)
                r = -ENOTSUP;
        if (r == 0)
                r = make_digest(arrival, names, remote, digest);
        if (r == 0)
                r = arriving_new(&(struct arriving_spec){ .root = unpacked_folder(arrival->unpacked),
                                                          .names = names,
                                                          .n = arrival->n,
                                                          .digest = digest,
                                                          .format = arriving_format(spec->format, names[0]),
                                                          .origin = remote ? &remote->origin : NULL,
                                                          .wanted = arrival_wanted,
                                                          .userdata = arrival },
                                 &arrival->arriving);
        if (r < 0)
                free_names(names, arrival->n);
        return r;
}

/* ---- opening ------------------------------------------------------------------------------------------------------
 */

static bool has_option(const struct opening *opening, const char *key) {
        _cleanup_(freep) char *value = NULL;

        return format_options_value(opening->options, key, &value) < 0 || (value && value[0]);
}

static int look_for_packed(void *userdata, const struct dirent *entry) {
        (void)userdata;
        return unpacked_is_compressed(entry->d_name);
}

/* Is nothing asked for that all files must be there for? */
static bool may_arrive(const struct opening *opening, const struct dataset_spec *spec) {
        return !opening->version[0] && !catalog_is_stream(opening->entry) && !has_option(opening, "split") &&
               !has_option(opening, FORMAT_MERGE) && strncmp(spec->format, SCANNER_PREFIX, strlen(SCANNER_PREFIX)) != 0;
}

/* Do these files have to be unpacked? */
static bool are_packed(const struct dataset_spec *spec, const struct files *files, int root_fd) {
        const struct format *format;
        struct why why;
        int r;

        for (size_t i = 0; i < files->n_names; i++)
                if (!unpacked_is_compressed(files->names[i]))
                        return false;
        if (files->n_names > 0)
                return true;
        if (format_look_into(root_fd, look_for_packed, NULL) != 1)
                return false;
        r = format_tell(spec->format, root_fd, files, spec->options, &format, &why);
        return r == -ENOTSUP || (r == 0 && format->cut);
}

/* Files have begun to arrive, unless there is an error. */
static int open_arriving(struct opening *opening, struct dataset_spec *spec, const struct indexing_origin *origin,
                         int error, const struct index_watch *watch) {
        struct arrival *arrival = opening->arrival;
        int r = error;

        if (r == 0)
                r = arriving_wait(arrival->arriving, watch->cancel, &opening->why);
        spec->arriving = arrival->arriving;
        spec->origin = origin;
        if (r == 0)
                r = dataset_open(spec, opening->entry->catalog->index_dir, watch, &opening->dataset, &opening->report,
                                 &opening->why);
        if (r < 0) {
                arrival_stop(arrival);
                arriving_free(TAKE_PTR(arrival->arriving));
        }
        return r;
}

static int unpack_and_open(struct opening *opening, struct dataset_spec *spec, const struct index_watch *watch) {
        struct arrival *arrival = opening->arrival;
        int r = find_blocks(arrival, spec, opening->remote);

        if (r < 0)
                return r == -ENOTSUP ? r : why_errno(&opening->why, r, "%s", opening->path);
        r = unpacked_start(arrival->unpacked, &opening->why);
        return open_arriving(opening, spec, NULL, r, watch);
}

/* ---- files that lie elsewhere as they are --------------------------------------------------------------------------
 */

struct arrival_listing {
        const struct format *format;
        struct growing names;
        size_t n;
};

static int list_one(void *userdata, const struct dirent *entry) {
        struct arrival_listing *listing = userdata;

        if (entry->d_name[0] == '.' || entry->d_type == DT_DIR ||
            arriving_format(listing->format->name, entry->d_name) != listing->format)
                return 0;
        listing->n++;
        return growing_append(&listing->names, entry->d_name, strlen(entry->d_name) + 1);
}

/* Those of the folder, or those that the path names, sorted. Of several splits one has to be chosen: opening the
 * dataset says so. */
static int list_far(const struct files *files, int root_fd, const struct format *format, char ***ret_names,
                    size_t *ret_n) {
        struct arrival_listing listing = { .format = format };
        int r = files->n_names == 0 ? format_look_into(root_fd, list_one, &listing) : 0;
        size_t n = files->n_names > 0 ? files->n_names : listing.n, n_one;
        const char *at = (const char *)listing.names.bytes;
        char **names = r == 0 && n > 0 ? calloc(n, sizeof(*names)) : NULL;
        struct why why;

        for (size_t i = 0; names && i < n; i++) {
                names[i] = strdup(files->n_names > 0 ? files->names[i] : at);
                r = names[i] ? r : -ENOMEM;
                at += files->n_names > 0 ? 0 : strlen(at) + 1;
        }
        growing_fini(&listing.names);
        if (names && r == 0) {
                qsort(names, n, sizeof(*names), by_name);
                n_one = n;
                if (files->n_names == 0 &&
                    (splits_choose("", NULL, true, (const char **)names, &n_one, &why) < 0 || n_one < n))
                        r = -ENOTSUP;
                for (size_t i = 0; i < n && r == 0; i++)
                        r = arriving_format(format->name, names[i]) == format ? 0 : -ENOTSUP;
        }
        if (!names || r < 0) {
                free_names(names, names ? n : 0);
                return r < 0 ? r : n > 0 ? -ENOMEM : -ENOTSUP;
        }
        *ret_names = names;
        *ret_n = n;
        return 0;
}

/* Is it known only once they are read what samples they have, and can they be cut? */
static int tell_far(const struct opening *opening, const struct dataset_spec *spec, const struct files *files,
                    int root_fd, const struct index_watch *watch, const struct format **ret_format) {
        struct indexing indexing = { .errands = errand_joined(),
                                     .cancel = watch->cancel,
                                     .origin = &opening->remote->origin,
                                     .is_refusing = ATOMIC_FLAG_INIT };
        struct why why;
        int r;

        indexing_join(&indexing);
        r = format_tell(spec->format, root_fd, files, spec->options, ret_format, &why);
        indexing_join(NULL);
        return r == 0 && (*ret_format)->cut ? 0 : -ENOTSUP;
}

static int read_and_open(struct opening *opening, struct dataset_spec *spec, const struct files *files, int root_fd,
                         const struct index_watch *watch) {
        struct arrival *arrival = opening->arrival;
        const struct format *format;
        char **names = NULL, digest[65];
        struct cpus cpus;
        size_t n = 0;
        int r = tell_far(opening, spec, files, root_fd, watch, &format);

        if (r == 0)
                r = list_far(files, root_fd, format, &names, &n);
        if (r < 0)
                return r;
        arrival->n = (uint32_t)n;
        cpus_find(&cpus);
        r = make_digest(arrival, names, opening->remote, digest);
        if (r == 0)
                r = arriving_new(&(struct arriving_spec){ .root = files->root,
                                                          .names = names,
                                                          .n = arrival->n,
                                                          .digest = digest,
                                                          .format = format,
                                                          .origin = &opening->remote->origin,
                                                          .n_threads = cpus_n_threads(&cpus) },
                                 &arrival->arriving);
        if (r < 0) {
                free_names(names, n);
                return why_errno(&opening->why, r, "%s", opening->path);
        }
        r = arriving_read_through(arrival->arriving, root_fd, &opening->why);
        return open_arriving(opening, spec, &opening->remote->origin, r, watch);
}

/* Would it be a block, once it is unpacked? */
static bool is_packed_block(const char *format, const char *name) {
        const char *end = strrchr(name, '.');
        _cleanup_(freep) char *plain = end && unpacked_is_compressed(name) ? strndup(name, (size_t)(end - name)) : NULL;

        return plain && arriving_format(format, plain);
}

static int look_for_packed_block(void *userdata, const struct dirent *entry) {
        const struct dataset_spec *spec = userdata;

        return is_packed_block(spec->format, entry->d_name);
}

bool opening_could_arrive(const struct opening *opening, const struct dataset_spec *spec,
                          const struct index_watch *watch) {
        _cleanup_(closep) int root_fd = -1;
        const struct format *format;
        struct files files = { 0 };
        char **names = NULL;
        bool could = false;
        size_t n = 0;

        if (!may_arrive(opening, spec) || unpacked_find(spec, &files, &root_fd, NULL) < 0)
                return false;
        if (are_packed(spec, &files, root_fd))
                could = files.n_names > 0
                                ? is_packed_block(spec->format, files.names[0])
                                : format_look_into(root_fd, look_for_packed_block, (void *)(uintptr_t)spec) == 1;
        else if (opening->remote && !opening->index[0] && tell_far(opening, spec, &files, root_fd, watch, &format) == 0)
                could = list_far(&files, root_fd, format, &names, &n) == 0;
        free_names(names, n);
        files_fini(&files);
        return could;
}

int opening_arrive(struct opening *opening, struct dataset_spec *spec, const struct index_watch *watch) {
        _cleanup_(closep) int root_fd = -1;
        struct files files = { 0 };
        struct unpacked_arrival asked;
        struct unpacked_terms terms;
        int r;

        r = unpacked_find(spec, &files, &root_fd, &opening->why);
        if (r < 0)
                return r;
        opening->arrival = calloc(1, sizeof(*opening->arrival));
        if (!opening->arrival || !may_arrive(opening, spec)) {
                files_fini(&files);
                return opening->arrival ? -ENOTSUP : -ENOMEM;
        }
        if (!are_packed(spec, &files, root_fd)) {
                r = -ENOTSUP;
                if (opening->remote && !opening->index[0]) /* an index beside the data knows all lengths */
                        r = read_and_open(opening, spec, &files, root_fd, watch);
                files_fini(&files);
                return r;
        }
        asked = (struct unpacked_arrival){ .next = arrival_next,
                                           .cut = arrival_cut,
                                           .grown = arrival_grown,
                                           .waits = arrival_waits,
                                           .failed = arrival_failed,
                                           .userdata = opening->arrival };
        terms = unpacked_terms_of(opening, &files, root_fd, watch);
        terms.arrival = &asked;
        r = cache_unpacked_open(opening->entry->catalog->cache, &terms, &opening->arrival->unpacked, &opening->why);
        files_fini(&files);
        return r < 0 ? r : unpack_and_open(opening, spec, watch);
}

void arrival_stop(struct arrival *arrival) {
        if (!arrival)
                return;
        if (arrival->arriving)
                arriving_leave(arrival->arriving);
        unpacked_stop(arrival->unpacked);
}

void arrival_free(struct arrival *arrival) {
        if (!arrival)
                return;
        unpacked_unref(arrival->unpacked);
        free(arrival->files);
        free(arrival->blocks);
        free(arrival);
}

bool arrival_is_in_place(const struct arrival *arrival) {
        return arrival && !arrival->unpacked;
}

bool arrival_is_current(const struct arrival *arrival) {
        return !arrival->unpacked || unpacked_is_current(arrival->unpacked); /* else its listing decides */
}

/* ---- serving ------------------------------------------------------------------------------------------------------
 */

/* Of such a dataset a job of blocks has the same numbers in each run, whatever was opened before. */
static bool is_read_far(const struct catalog_dataset *open) {
        const struct format *format;
        struct why why;

        return open->remote && format_find(dataset_source(open->dataset)->format, &format, &why) == 0 && format->cut;
}

/* Whether its files are compressed is known once it was opened, or this has been tried. */
static bool may_be_opened_so(const struct catalog_entry *entry) {
        return !entry->cannot_arrive && !entry->staged && !entry->catalog->is_ending &&
               (entry->state == CATALOG_CLOSED || (entry->open && (entry->open->unpacked || is_read_far(entry->open))));
}

/* And nobody is served from it any more. */
static bool has_failed(struct catalog_dataset *open) {
        return atomic_load_explicit(&open->refs, memory_order_acquire) == 1 &&
               growth_has_failed(dataset_source(open->dataset)->growth, NULL);
}

int catalog_get_blocks(struct catalog *catalog, const char *name, struct catalog_dataset **ret_dataset,
                       struct why *why) {
        struct catalog_entry *entry = entry_find(catalog, name);

        if (!entry)
                return -ENOTSUP;
        entry->used_ns = clock_now_ns();
        if (entry->arriving && has_failed(entry->arriving)) /* perhaps the origin did not answer: from the beginning */
                catalog_dataset_unref(TAKE_PTR(entry->arriving));
        if (entry->arriving) {
                *ret_dataset = catalog_dataset_ref(entry->arriving);
                return 0;
        }
        if (!may_be_opened_so(entry))
                return -ENOTSUP;
        if (!entry->is_opening)
                entry_open_as(entry, true);
        return entry->is_opening ? why_set(why, -EAGAIN, "dataset %s: its first file is being unpacked", name)
                                 : -ENOTSUP;
}
