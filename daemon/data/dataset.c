#include "daemon/data/dataset.h"

/* Takes the index that was given. Otherwise loads the saved one; otherwise builds one. A new index is saved by rename,
 * or kept in memory if it cannot be saved. */

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/file_stamp.h"
#include "daemon/data/files/complete.h"
#include "daemon/data/files/globs.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/index/index_draft.h"
#include "daemon/data/index/index_given.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/intake/intake.h"
#include "daemon/data/joined/joined.h"
#include "daemon/data/look.h"
#include "daemon/data/view/split.h"
#include "daemon/data/view/view.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

struct dataset {
        atomic_uint n_refs;
        bool follows_links;   /* out of its folder */
        int root_fd;          /* -1: not held. The number does not change while it is held */
        pthread_mutex_t lock; /* guards what follows, and whether root_fd is open; no other lock is taken under it */
        unsigned n_holds;
        dev_t device; /* of the folder, */
        ino_t inode;  /* to recognise it when it is opened again */
        char *name;
        struct files files; /* what its path means */
        struct format_options options;
        const struct format *format;
        char options_digest[65];  /* of the options, and of the state of the file that one of them may name */
        struct stat split_status; /* of the file that names the samples (data/view/split.h); zeroes without one */
        struct source *index;
        const struct indexing_origin *origin; /* as in the spec */
        bool is_stream;                       /* it is served while its shards are being written */
        uint32_t n_hidden;                    /* files that were passed over */
        bool is_given;                /* the index came with the folder: its times may be those of another node */
        bool has_scanner;             /* of a plug-in, by which it cannot be indexed again */
        const struct source *stamped; /* the index, without a view: its shards were as it says; NULL: who knows */
        struct budget *budget;        /* as in the spec */
        _Atomic int64_t settled_ns;   /* files that were last changed until then are as the index says */
        atomic_bool has_changed;      /* but later ones are not */
        struct dataset **parts; /* one reference each; NULL: it is not joined. A joined one has name, index and these */
        uint32_t n_parts;
};

struct dataset *dataset_ref(struct dataset *dataset) {
        atomic_fetch_add_explicit(&dataset->n_refs, 1, memory_order_relaxed);
        return dataset;
}

void dataset_unref(struct dataset *dataset) {
        /* acquire and release: the thread that frees must see all that the others did before they let go */
        if (!dataset || atomic_fetch_sub_explicit(&dataset->n_refs, 1, memory_order_acq_rel) > 1)
                return;
        source_close(dataset->index);
        for (uint32_t k = 0; k < dataset->n_parts; k++)
                dataset_unref(dataset->parts[k]);
        free(dataset->parts);
        closep(&dataset->root_fd);
        pthread_mutex_destroy(&dataset->lock);
        free(dataset->name);
        files_fini(&dataset->files);
        format_options_fini(&dataset->options);
        if (dataset->origin)
                dataset->origin->release(dataset->origin->userdata);
        free(dataset);
}

void dataset_unrefp(struct dataset **dataset) {
        dataset_unref(*dataset);
}

/* The last word is for people who look into the folder; letters that could have a meaning in a file name are left out.
 */
static void add_last_word(const char *path, char text[DLP_NAME_MAX]) {
        size_t n_path = strcspn(path, "{"), n = 0, begin; /* before options and patterns */

        while (n_path > 0 && strchr("/ ", path[n_path - 1]))
                n_path--;
        for (begin = n_path; begin > 0 && path[begin - 1] != '/'; begin--)
                ;
        for (size_t i = begin; i < n_path && n < 40; i++)
                if (isalnum((unsigned char)path[i]) || (n > 0 && strchr("._-", path[i])))
                        text[n++] = path[i];
        text[n] = '\0';
}

int dataset_file_name(const char *name, char ret_text[DLP_NAME_MAX], struct why *why) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        char text[DLP_NAME_MAX];
        size_t n;

        if (name[0] == '\0' || name[0] == '.' || (!strchr(name, '/') && strlen(name) >= DLP_NAME_MAX))
                return why_set(why, -EINVAL, "\"%s\" cannot name a dataset: it must not begin with '.'", name);
        if (!strchr(name, '/')) {
                strcpy(ret_text, name);
                return 0;
        }
        if (!EVP_Digest(name, strlen(name), digest, NULL, EVP_sha256(), NULL))
                return why_set(why, -ENOMEM, "no memory for the name of the index of %s", name);
        add_last_word(name, text);
        n = strlen(text);
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%spath-", n > 0 ? "-" : "");
        for (size_t i = 0; i < 12; i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%02x", digest[i]);
        strcpy(ret_text, text);
        return 0;
}

int dataset_index_path(const char *index_dir, const char *name, char ret_path[PATH_MAX], struct why *why) {
        char path[PATH_MAX], text[DLP_NAME_MAX];
        int n = dataset_file_name(name, text, why);

        if (n < 0)
                return n;
        n = snprintf(path, sizeof(path), "%s/%s.index", index_dir, text);
        if (n < 0 || (size_t)n >= sizeof(path) - 16) /* leaves room for the ending of a temporary name */
                return why_set(why, -ENAMETOOLONG, "the path of the index of %s is too long", name);
        strcpy(ret_path, path);
        return 0;
}

/* ---- load ---------------------------------------------------------------------------------------------------- */

/* Returns 0 with the index; a positive DATASET_BUILT or DATASET_REBUILT if one must be made, with the reason in
 * `ret_reason`; or an errno. */
static int dataset_load(const struct dataset *dataset, const char *index_path, const struct format *format,
                        struct budget *budget, struct source **ret_index, struct why *ret_reason, struct why *why) {
        _cleanup_(source_closep) struct source *index = NULL;
        int r;

        r = index_open(index_path, budget, &index, ret_reason);
        if (r == -ENOENT) {
                ret_reason->text[0] = '\0';
                return DATASET_BUILT;
        }
        if (r == -ENOMEM)
                return why_set(why, r, "%s", ret_reason->text);
        if (r < 0)
                return DATASET_REBUILT; /* whatever is wrong with the file: the folder decides */

        if (strcmp(index->format, format->name) != 0) {
                why_set(ret_reason, 0, "it was made as %s", index->format);
                return DATASET_REBUILT;
        }
        if (strcmp(index_options(index), dataset->options_digest) != 0) {
                why_set(ret_reason, 0, "it was made with other options, or another file that they name");
                return DATASET_REBUILT;
        }
        if (!index_is_of(index, dataset->files.names, files_n_all(&dataset->files))) {
                why_set(ret_reason, 0, "it was made of other files");
                return DATASET_REBUILT;
        }
        r = dataset->origin ? 0 : source_is_current(index, dataset->root_fd, ret_reason);
        if (r != 0)
                return DATASET_REBUILT; /* also if a directory cannot be looked at: building says which, and why */

        *ret_index = TAKE_PTR(index);
        return 0;
}

/* ---- build and save ------------------------------------------------------------------------------------------ */

/* The open descriptor is that of the file written here, even if another process renames its own file into place
 * next. */
static int save(struct index_builder *builder, const char *index_dir, const char *index_path, struct budget *budget,
                struct source **ret_index, struct why *why) {
        _cleanup_(source_closep) struct source *index = NULL;
        struct index_draft draft;
        int r = index_draft_make(index_dir, index_path, &draft, why);

        if (r == 0)
                r = index_builder_write(builder, draft.fd, draft.path, why);
        if (r == 0)
                r = index_open_fd(draft.fd, draft.path, budget, &index, why);
        if (r == 0)
                r = index_draft_place(&draft, why);
        index_draft_drop(&draft);
        if (r == 0)
                *ret_index = TAKE_PTR(index);
        return r;
}

static int dataset_make_index(struct dataset *dataset, const struct index_watch *watch,
                              struct index_builder **ret_builder, struct why *why) {
        int r = files_check(&dataset->files, dataset->root_fd, why);

        if (r == 0)
                r = format_build(dataset->format, dataset->root_fd, &dataset->files, &dataset->options, watch,
                                 ret_builder, why);
        if (r == 0)
                index_builder_set_options(*ret_builder, dataset->options_digest);
        return r;
}

static int dataset_build(struct dataset *dataset, const char *index_dir, const char *index_path, struct budget *budget,
                         const struct index_watch *watch, struct dataset_report *report, struct why *why) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        int r;

        r = dataset_make_index(dataset, watch, &builder, why);
        if (r < 0)
                return r;
        r = save(builder, index_dir, index_path, budget, &dataset->index, &report->not_saved);
        report->saved = r >= 0;
        if (r == -ECANCELED)
                return why_set(why, r, "%s", report->not_saved.text);
        return r >= 0 ? 0 : index_in_memory(builder, dataset->name, budget, &dataset->index, why);
}

/* Its memory is counted in the budget until it is written. */
static int build_paid(struct dataset *dataset, const char *index_dir, const char *index_path, struct budget *budget,
                      const struct index_watch *watch, struct dataset_report *report, struct why *why) {
        struct indexing *indexing = indexing_joined();
        int r;

        indexing->budget = budget;
        r = dataset_build(dataset, index_dir, index_path, budget, watch, report, why);
        assert(atomic_load(&indexing->n_bytes) == 0);
        indexing->budget = NULL;
        if (r == -ENOMEM && indexing->refusal.text[0])
                return why_set(why, r, "%s: %s", dataset->files.root, indexing->refusal.text);
        return r;
}

/* ---- open ---------------------------------------------------------------------------------------------------- */

static int open_root(const struct dataset *dataset, struct why *why) {
        return beneath_root(dataset->files.root, dataset->follows_links, why);
}

/* Remembers which folder it is. */
static void dataset_remember(struct dataset *dataset, int fd) {
        struct stat status;

        if (fstat(fd, &status) < 0)
                return;
        pthread_mutex_lock(&dataset->lock);
        dataset->device = status.st_dev;
        dataset->inode = status.st_ino;
        pthread_mutex_unlock(&dataset->lock);
}

static bool is_same_folder(const struct dataset *dataset, int fd) {
        pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&dataset->lock;
        struct stat status;
        bool same;

        if (fstat(fd, &status) < 0)
                return false;
        pthread_mutex_lock(lock);
        same = status.st_dev == dataset->device && status.st_ino == dataset->inode;
        pthread_mutex_unlock(lock);
        return same;
}

/* Zeroes if there is no such file, or it cannot be looked at. */
static void look_at_split_file(const struct dataset *dataset, int root_fd, struct stat *ret_status) {
        char path[PATH_MAX];

        split_file(dataset->options.split ? dataset->options.split : "", path);
        if (!path[0] || beneath_stat_named(root_fd, dataset->files.root, path, ret_status) < 0)
                *ret_status = (struct stat){ 0 };
}

static bool split_file_changed(const struct dataset *dataset, int root_fd) {
        const struct stat *was = &dataset->split_status;
        struct stat is;

        look_at_split_file(dataset, root_fd, &is);
        return !file_is_same(was, &is);
}

static int refuse_pipe(const struct dataset_spec *spec, struct why *why) {
        return why_set(
                why, -EINVAL,
                "%s is a pipe: its data come once and in one sequence; for tar archives, set stream = yes and format "
                "= \"webdataset\"",
                spec->path);
}

/* The folder that holds all files must be known before the format is. */
static int dataset_find_files(const struct dataset_spec *spec, struct files *ret_files, struct why *why) {
        _cleanup_(freep) char *merge = NULL;

        if (spec->arriving) {
                arriving_first(spec->arriving, ret_files);
                return 0;
        }
        if (format_options_value(spec->options, FORMAT_MERGE, &merge) < 0)
                return why_set(why, -ENOMEM, "no memory to open dataset %s", spec->name);
        return files_find(spec->path, merge, spec->follows_links, ret_files, why);
}

/* An index is that of the files as the origin has them: their times here say nothing. */
static int add_origin_digest(const struct indexing_origin *origin, char digest[65]) {
        unsigned char bytes[EVP_MAX_MD_SIZE];
        char both[129];
        int n = snprintf(both, sizeof(both), "%s%s", digest, origin->digest);

        if (!EVP_Digest(both, (size_t)n, bytes, NULL, EVP_sha256(), NULL))
                return -ENOMEM;
        for (size_t i = 0; i < 32; i++)
                snprintf(digest + 2 * i, 3, "%02x", bytes[i]);
        return 0;
}

static int dataset_new(const struct dataset_spec *spec, struct dataset **ret_dataset, struct why *why) {
        _cleanup_(dataset_unrefp) struct dataset *dataset = calloc(1, sizeof(*dataset));
        struct why detail;
        int r;

        if (!dataset)
                return why_set(why, -ENOMEM, "no memory to open dataset %s", spec->name);
        atomic_init(&dataset->n_refs, 1);
        pthread_mutex_init(&dataset->lock, NULL);
        dataset->root_fd = -1;
        dataset->name = strdup(spec->name);
        if (!dataset->name)
                return why_set(why, -ENOMEM, "no memory to open dataset %s", spec->name);
        r = dataset_find_files(spec, &dataset->files, why);
        if (r < 0)
                return r;
        if (dataset->files.is_pipe && (!spec->format || strcmp(spec->format, "auto") == 0))
                return refuse_pipe(spec, why); /* to tell its format, one would have to read from it */
        dataset->follows_links = spec->follows_links;
        dataset->root_fd = open_root(dataset, &detail);
        if (dataset->root_fd < 0)
                return why_set(why, dataset->root_fd, "the folder of dataset %s cannot be opened: %s", spec->name,
                               detail.text);
        r = format_tell(spec->format, dataset->root_fd, &dataset->files, spec->options, &dataset->format, why);
        if (r == 0)
                r = format_check_files(dataset->format, &dataset->files, why);
        if (r == 0)
                r = format_options_parse(spec->options, dataset->format, &dataset->options, why);
        dataset->is_stream = r == 0 && (dataset->options.is_stream || spec->arriving);
        if (r == 0 && dataset->files.is_pipe && !dataset->is_stream)
                r = refuse_pipe(spec, why);
        if (r < 0)
                return r;
        r = spec->scanner ? format_options_take_scanner(&dataset->options, spec->scanner) : 0;
        if (r == 0)
                r = format_options_stamp(&dataset->options, dataset->format->file_option, dataset->root_fd,
                                         dataset->files.root, dataset->options_digest);
        if (r == 0 && spec->origin)
                r = add_origin_digest(spec->origin, dataset->options_digest);
        if (r < 0)
                return why_set(why, r, "no memory to open dataset %s", spec->name);
        look_at_split_file(dataset, dataset->root_fd, &dataset->split_status); /* before it is read */
        dataset->n_holds = 1;
        dataset->budget = spec->budget;
        if (spec->origin)
                spec->origin->hold(spec->origin->userdata);
        dataset->origin = spec->origin;
        dataset->has_scanner = spec->scanner != NULL;
        atomic_init(&dataset->settled_ns, INT64_MIN);
        dataset_remember(dataset, dataset->root_fd);
        *ret_dataset = TAKE_PTR(dataset);
        return 0;
}

/* The roll of its shards is beside the indices. */
static int open_stream(struct dataset *dataset, const struct dataset_spec *spec, const char *index_dir,
                       const char *index_path, const struct index_watch *watch, struct why *why) {
        char roll[PATH_MAX];
        const struct intake_spec intake = { .root_fd = dataset->root_fd,
                                            .files = &dataset->files,
                                            .options = &dataset->options,
                                            .roll = roll,
                                            .budget = spec->budget };

        mkdir(index_dir, 0700); /* as for an index */
        snprintf(roll, sizeof(roll), "%.*s.stream", (int)(strlen(index_path) - strlen(".index")), index_path);
        return intake_open(&intake, watch, &dataset->index, why);
}

/* Opens what answers for the samples: live, given, loaded or built. */
static int dataset_open_source(struct dataset *dataset, const struct dataset_spec *spec, const char *index_dir,
                               const char *index_path, const struct index_watch *watch, struct dataset_report *report,
                               struct why *why) {
        const struct format *format = dataset->format;
        int r;

        if (spec->arriving) {
                report->how = DATASET_LIVE;
                return arriving_open(spec->arriving, dataset->root_fd, &dataset->options, spec->budget, &dataset->index,
                                     why);
        }
        if (dataset->is_stream) {
                report->how = DATASET_LIVE;
                return open_stream(dataset, spec, index_dir, index_path, watch, why);
        }
        if (format->open) {
                report->how = DATASET_LIVE;
                r = files_check(&dataset->files, dataset->root_fd, why);
                return r < 0 ? r
                             : format->open(dataset->root_fd, &dataset->files, &dataset->options, watch, spec->budget,
                                            &dataset->index, why);
        }
        if (spec->given_index &&
            index_given_open(spec, format->name, spec->origin ? dataset->options_digest : dataset->options.digest,
                             index_dir, index_path, &dataset->index, &report->not_taken) == 0) {
                report->how = DATASET_GIVEN;
                dataset->is_given = true;
                return 0;
        }
        r = dataset_load(dataset, index_path, format, spec->budget, &dataset->index, &report->reason, why);
        if (r <= 0)
                return r;
        report->how = (enum dataset_how)r;
        return build_paid(dataset, index_dir, index_path, spec->budget, watch, report, why);
}

/* Are all files of numbered sets there? A path that names single files means just these. */
static int check_complete(const struct dataset *dataset, const struct dataset_spec *spec, struct why *why) {
        const char **names;
        struct why detail;
        int r;

        if (dataset->options.allows_missing || dataset->index->n_shards == 0 ||
            (dataset->files.n_names > 0 && !strpbrk(spec->path, GLOB_CHARACTERS)))
                return 0;
        names = calloc(dataset->index->n_shards, sizeof(*names));
        if (!names)
                return why_set(why, -ENOMEM, "no memory to open dataset %s", spec->name);
        for (uint64_t i = 0; i < dataset->index->n_shards; i++)
                names[i] = index_shard_name(dataset->index, i);
        r = files_check_complete(names, dataset->index->n_shards, &detail);
        free(names);
        return r < 0 ? why_set(why, r, "%s: %s", dataset->files.root, detail.text) : 0;
}

int dataset_open(const struct dataset_spec *spec, const char *index_dir, const struct index_watch *watch,
                 struct dataset **ret_dataset, struct dataset_report *ret_report, struct why *why) {
        _cleanup_(dataset_unrefp) struct dataset *dataset = NULL;
        struct indexing indexing = { .errands = errand_joined(),
                                     .cancel = watch ? watch->cancel : NULL,
                                     .origin = spec->origin,
                                     .is_refusing = ATOMIC_FLAG_INIT };
        struct dataset_report report = { .saved = true };
        uint64_t begin_ns = clock_now_ns();
        char index_path[PATH_MAX];
        int r;

        r = dataset_index_path(index_dir, spec->name, index_path, why);
        if (r < 0)
                return r;
        indexing_join(&indexing);
        r = dataset_new(spec, &dataset, why);
        if (r == 0)
                r = dataset_open_source(dataset, spec, index_dir, index_path, watch, &report, why);
        indexing_join(NULL);
        if (!dataset)
                return r;
        if (r == -ECANCELED)
                why_set(why, r, "%s: indexing was cancelled", dataset->files.root);
        dataset->options.scanner = NULL;
        if (r == 0 && !dataset->is_stream)
                dataset->n_hidden = dataset->files.n_hidden + (dataset->format->open ? atomic_load(&indexing.n_hidden)
                                                                                     : index_n_hidden(dataset->index));
        if (r == 0 && !dataset->is_stream && !dataset->format->open)
                r = check_complete(dataset, spec, why);
        if (r == 0 && dataset->format->extend && !spec->arriving) /* which does so for each of its indices */
                dataset->format->extend(dataset->index);
        if (r == 0 && !dataset->is_stream && !dataset->format->open && !spec->is_staged && !spec->origin)
                dataset->stamped = dataset->index;
        if (r == 0)
                r = view_open(&dataset->index, dataset->options.fields, dataset->options.split,
                              &(struct split_root){ dataset->root_fd, dataset->files.root }, why);
        if (r < 0)
                return r;
        report.duration_ns = clock_now_ns() - begin_ns;
        if (ret_report)
                *ret_report = report;
        *ret_dataset = TAKE_PTR(dataset);
        return 0;
}

/* ---- several as one ------------------------------------------------------------------------------------------- */

static int joined_new(struct dataset *const *parts, uint32_t n_parts, const char *name, struct dataset **ret_dataset) {
        _cleanup_(dataset_unrefp) struct dataset *dataset = calloc(1, sizeof(*dataset));

        if (!dataset)
                return -ENOMEM;
        atomic_init(&dataset->n_refs, 1);
        pthread_mutex_init(&dataset->lock, NULL);
        dataset->root_fd = -1;
        dataset->name = strdup(name);
        dataset->parts = calloc(n_parts, sizeof(struct dataset *));
        if (!dataset->name || !dataset->parts)
                return -ENOMEM;
        for (; dataset->n_parts < n_parts; dataset->n_parts++)
                dataset->parts[dataset->n_parts] = dataset_ref(parts[dataset->n_parts]);
        *ret_dataset = TAKE_PTR(dataset);
        return 0;
}

int dataset_join(struct dataset *const *parts, uint32_t n_parts, const char *name, struct dataset **ret_dataset,
                 struct why *why) {
        _cleanup_(dataset_unrefp) struct dataset *dataset = NULL;
        struct joined_part sources[DLP_PARTS_MAX];
        int r;

        for (uint32_t k = 0; k < n_parts; k++)
                sources[k] = (struct joined_part){ parts[k]->name, parts[k]->index };
        if (joined_new(parts, n_parts, name, &dataset) < 0)
                return why_set(why, -ENOMEM, "no memory to join %s", name);
        r = joined_open(sources, n_parts, &dataset->index, why);
        if (r < 0)
                return r;
        *ret_dataset = TAKE_PTR(dataset);
        return 0;
}

uint32_t dataset_n_parts(const struct dataset *dataset) {
        return dataset->n_parts > 0 ? dataset->n_parts : 1;
}

struct dataset *dataset_part(struct dataset *dataset, uint32_t idx) {
        return dataset->n_parts > 0 ? dataset->parts[idx] : dataset;
}

struct dataset *dataset_with(struct dataset *dataset, uint64_t sample) {
        return dataset->n_parts > 0 ? dataset->parts[source_part_of(dataset->index, sample)] : dataset;
}

static int hold_parts(struct dataset *dataset, struct why *why) {
        uint32_t k = 0;
        int r = 0;

        while (k < dataset->n_parts && r == 0)
                r = dataset_hold(dataset->parts[k++], why);
        if (r == 0)
                return 0;
        for (k--; k > 0; k--) /* all that were held before the one that could not be */
                dataset_leave(dataset->parts[k - 1]);
        return r;
}

/* ---- accessors ----------------------------------------------------------------------------------------------- */

/* Opens the folder without the lock, because a dead mount would hold the lock for ever. */
int dataset_hold(struct dataset *dataset, struct why *why) {
        _cleanup_(closep) int fd = -1;
        struct why detail;

        if (dataset->n_parts > 0)
                return hold_parts(dataset, why);
        pthread_mutex_lock(&dataset->lock);
        if (dataset->n_holds > 0) {
                dataset->n_holds++;
                pthread_mutex_unlock(&dataset->lock);
                return 0;
        }
        pthread_mutex_unlock(&dataset->lock);

        fd = open_root(dataset, &detail);
        if (fd < 0)
                return why_set(why, fd, "the folder of dataset %s cannot be opened: %s", dataset->name, detail.text);
        if (!is_same_folder(dataset, fd))
                return why_set(why, -ESTALE, "%s is another folder now; attach again", dataset->files.root);
        pthread_mutex_lock(&dataset->lock);
        if (dataset->n_holds++ == 0) /* otherwise another thread was faster */
                dataset->root_fd = take_fd(&fd);
        pthread_mutex_unlock(&dataset->lock);
        return 0;
}

void dataset_leave(struct dataset *dataset) {
        int fd = -1;

        for (uint32_t k = 0; k < dataset->n_parts; k++)
                dataset_leave(dataset->parts[k]);
        if (dataset->n_parts > 0)
                return;
        pthread_mutex_lock(&dataset->lock);
        if (--dataset->n_holds == 0) {
                fd = dataset->root_fd;
                dataset->root_fd = -1;
        }
        pthread_mutex_unlock(&dataset->lock);
        if (fd >= 0)
                close(fd);
}

int dataset_is_current(const struct dataset *dataset, struct why *why) {
        _cleanup_(closep) int fd = open_root(dataset, why);
        char options_digest[sizeof(dataset->options_digest)];

        /* What counts is the folder that is now at the path, not where a renamed folder is. */
        if (fd < 0 && fd != -ENOENT && fd != -ENOTDIR)
                return fd;
        if (fd < 0 || !is_same_folder(dataset, fd)) {
                why_set(why, 0, "%s is gone, or another folder now", dataset->files.root);
                return SOURCE_STALE;
        }
        if (dataset->origin)
                return 0; /* its listing decides (store/cache/cache.h) */
        if (format_options_stamp(&dataset->options, dataset->format->file_option, fd, dataset->files.root,
                                 options_digest) < 0)
                return why_set(why, -ENOMEM, "%s: no memory to look at it", dataset->files.root);
        if (strcmp(options_digest, dataset->options_digest) != 0) {
                why_set(why, 0, "%s has changed", format_option(&dataset->options, dataset->format->file_option));
                return SOURCE_STALE;
        }
        if (split_file_changed(dataset, fd)) {
                why_set(why, 0, "the file of split %s has changed", dataset->options.split);
                return SOURCE_STALE;
        }
        return source_is_current(dataset->index, fd, why);
}

/* ---- has it changed while it is read? -------------------------------------------------------------------------- */

bool dataset_has_stamps(const struct dataset *dataset, int64_t *ret_settled_ns) {
        *ret_settled_ns = atomic_load_explicit(&dataset->settled_ns, memory_order_relaxed);
        return dataset->stamped;
}

bool dataset_has_changed(const struct dataset *dataset) {
        return atomic_load_explicit(&dataset->has_changed, memory_order_relaxed);
}

static int index_again(struct dataset *dataset, const atomic_bool *cancel, struct source **ret_index, struct why *why) {
        struct indexing indexing = { .budget = dataset->budget, .cancel = cancel, .is_refusing = ATOMIC_FLAG_INIT };
        const struct index_watch watch = { .cancel = cancel };
        struct index_builder *builder = NULL;
        int r;

        indexing_join(&indexing);
        r = dataset_make_index(dataset, &watch, &builder, why);
        if (r == 0)
                r = index_in_memory(builder, dataset->name, dataset->budget, ret_index, why);
        index_builder_freep(&builder);
        indexing_join(NULL);
        if (r == -ENOMEM && indexing.refusal.text[0])
                return why_set(why, r, "%s: %s", dataset->files.root, indexing.refusal.text);
        return r;
}

/* Errors that are not about what the files hold. */
static bool says_nothing(int error) {
        return error == -ECANCELED || error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EIO ||
               error == -ESTALE || read_error_kind(error) == READ_ERROR_OUTAGE;
}

int dataset_compare_bytes(struct dataset *dataset, const atomic_bool *cancel, struct why *why) {
        _cleanup_(source_closep) struct source *index = NULL;
        int r = dataset->has_scanner ? -EBADMSG : index_again(dataset, cancel, &index, why);

        if (says_nothing(r))
                return r;
        if (r == 0 && strcmp(index->digest, dataset->stamped->digest) == 0 &&
            index_has_same_places(index, dataset->stamped))
                atomic_store_explicit(&dataset->settled_ns, index_last_change_ns(index), memory_order_relaxed);
        else
                atomic_store_explicit(&dataset->has_changed, true, memory_order_relaxed);
        return 0;
}

int dataset_reopen(struct dataset *dataset) {
        struct why why;
        _cleanup_(closep) int fd = open_root(dataset, &why);
        int r;

        if (fd < 0)
                return fd;
        r = source_is_same(dataset->index, fd, !dataset->is_given, &why);
        if (r != 0)
                return r < 0 ? r : -ENOENT;
        /* All threads switch at once: the number of the descriptor stays, and the folder that it stands for changes. */
        if (dup3(fd, dataset->root_fd, O_CLOEXEC) < 0)
                return -errno;
        dataset_remember(dataset, fd);
        return 0;
}

const char *dataset_name(const struct dataset *dataset) {
        return dataset->name;
}

const struct indexing_origin *dataset_origin(const struct dataset *dataset) {
        return dataset->origin;
}

const char *dataset_root(const struct dataset *dataset) {
        return dataset->files.root;
}

const struct source *dataset_source(const struct dataset *dataset) {
        return dataset->index;
}

uint32_t dataset_n_hidden(const struct dataset *dataset) {
        return dataset->n_hidden;
}

bool dataset_follows_links(const struct dataset *dataset) {
        return dataset->follows_links;
}

int dataset_root_fd(const struct dataset *dataset) {
        assert(dataset->n_parts == 0);
        return dataset->root_fd;
}
