#include "daemon/store/cache/cache_unpacked.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/disk.h"
#include "daemon/base/machine/file_stamp.h"
#include "daemon/base/work/crew.h"
#include "daemon/store/cache/cache_folders.h"
#include "daemon/store/cache/cache_private.h"
#include "daemon/store/cache/compressed.h"
#include "daemon/store/cache/unpack_file.h"
#include "daemon/store/plan/lookup.h"
#include "proto/base/bytes.h"
#include "proto/base/cleanup.h"
#include "proto/base/shown/amounts.h"

#define TICK_NS      200000000ull
#define NO_LISTING   "unpacked"
#define WINDOW_BYTES (1u << 20)

struct unpacked {
        struct cache *cache;
        struct cache_opened opened; /* keeps its folder from being removed */
        char path[PATH_MAX];
        int files_fd;
        int root_fd; /* the folder that has the compressed files */
        struct compressed files;
        struct cache_journal journal;
        uint64_t n_bytes; /* of plain files, complete */
};

/* One run: files are taken by whoever is free. */
struct unpacking {
        struct unpacked *unpacked;
        const struct unpacked_terms *terms;
        _Atomic size_t next;
        _Atomic uint64_t n_read; /* of compressed files */
        atomic_bool is_over;     /* one has failed */
        _Atomic uint64_t n_room;
        pthread_mutex_t lock; /* a leaf; of the journal and of what follows */
        int result;
        struct why why;
};

/* A file of it, with whoever has taken it. */
struct unpacking_file {
        struct unpacking *unpacking;
        const struct compressed_file *file;
        int fd;
        uint64_t n_told;
};

const char *unpacked_path(const struct unpacked *unpacked) {
        return unpacked->path;
}

bool unpacked_is_compressed(const char *name) {
        return compressed_plain_length(name) > 0;
}

/* ---- a file ------------------------------------------------------------------------------------------------------ */

static bool unpacked_is_over(struct unpacking *unpacking) {
        const atomic_bool *cancel = unpacking->terms->cancel;

        return atomic_load(&unpacking->is_over) || (cancel && atomic_load_explicit(cancel, memory_order_relaxed));
}

static ssize_t unpacked_on_read(void *userdata, void *into, size_t n, uint64_t offset) {
        struct unpacking_file *file = userdata;
        uint64_t n_left = file->file->stamp.n_bytes - offset;
        struct cached *cached = file->unpacking->terms->cached;
        struct why why;
        ssize_t n_read;
        int r;

        if (!cached) {
                n_read = pread(file->fd, into, n, (off_t)offset);
                return n_read < 0 ? -errno : n_read;
        }
        n = n_left < n ? (size_t)n_left : n;
        r = n > 0 ? cached_read(cached, file->fd, into, n, offset, file->unpacking->terms->cancel, &why) : 0;
        return r < 0 ? r : (ssize_t)n;
}

static bool unpacked_on_progress(void *userdata, uint64_t n_read) {
        struct unpacking_file *file = userdata;

        atomic_fetch_add(&file->unpacking->n_read, n_read - file->n_told);
        file->n_told = n_read;
        return unpacked_is_over(file->unpacking);
}

/* A file that is not compressed is copied as it is. */
static int unpacked_copy(struct unpacking_file *file, int into_fd, uint64_t *ret_n_bytes) {
        _cleanup_(freep) uint8_t *window = malloc(WINDOW_BYTES);
        ssize_t n = window ? 1 : -ENOMEM;
        int r;

        for (*ret_n_bytes = 0; n > 0; *ret_n_bytes += n > 0 ? (uint64_t)n : 0) {
                n = unpacked_on_progress(file, *ret_n_bytes)
                            ? -ECANCELED
                            : unpacked_on_read(file, window, WINDOW_BYTES, *ret_n_bytes);
                if (n > 0 && *ret_n_bytes + (uint64_t)n > file->unpacking->n_room)
                        return -EFBIG;
                r = n > 0 ? disk_write_at(into_fd, window, (size_t)n, *ret_n_bytes) : 0;
                if (r < 0)
                        return r;
        }
        return (int)n;
}

static int unpacked_write(struct unpacking_file *file, int into_fd, uint64_t *ret_n_bytes, struct why *why) {
        const struct unpack_file plain = { .name = file->file->path,
                                           .into_fd = into_fd,
                                           .limit_bytes = file->unpacking->n_room,
                                           .read = unpacked_on_read,
                                           .progress = unpacked_on_progress,
                                           .userdata = file };
        int r;

        if (file->file->n_plain > 0)
                return unpack_file_run(&plain, ret_n_bytes, why);
        r = unpacked_copy(file, into_fd, ret_n_bytes);
        if (r == -EFBIG)
                return why_set(why, r, "%s does not fit into cache_limit", file->file->path);
        return r < 0 ? why_errno(why, r, "%s", file->file->path) : 0;
}

static int unpacked_note(struct unpacking *unpacking, const struct compressed_file *file, uint64_t n_bytes) {
        struct journal_record record = { .chunk = file->number, .n_bytes = n_bytes, .digest = file->state };
        struct cache *cache = unpacking->unpacked->cache;
        int r;

        pthread_mutex_lock(&unpacking->lock);
        r = cache_journal_add(&unpacking->unpacked->journal, &record);
        unpacking->unpacked->n_bytes += n_bytes;
        unpacking->n_room -= n_bytes < unpacking->n_room ? n_bytes : unpacking->n_room;
        pthread_mutex_unlock(&unpacking->lock);
        pthread_mutex_lock(&cache->lock);
        cache->n_bytes += n_bytes;
        pthread_mutex_unlock(&cache->lock);
        return r;
}

/* Under another name until it is complete. */
static int cache_unpack_one(struct unpacking *unpacking, const struct compressed_file *file, struct why *why) {
        struct unpacking_file reading = { .unpacking = unpacking, .file = file, .fd = -1 };
        struct lookup lookup = LOOKUP_OF(unpacking->unpacked->files_fd);
        char plain[PATH_MAX], unfinished[64];
        _cleanup_(closep) int into_fd = -1;
        uint64_t n_bytes = 0;
        const char *name;
        int dir_fd, r = 0;

        compressed_plain_path(file, plain);
        dir_fd = lookup_folder_of(&lookup, plain, true, &name);
        snprintf(unfinished, sizeof(unfinished), ".unfinished-%016" PRIx64, file->number);
        reading.fd = beneath_open(unpacking->terms->root_fd, file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (reading.fd < 0)
                r = why_errno(why, -errno, "%s/%s", unpacking->terms->root, file->path);
        if (r == 0 && dir_fd < 0)
                r = why_errno(why, dir_fd, "cache_dir: %s", plain);
        if (r == 0)
                into_fd = openat(dir_fd, unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (r == 0 && into_fd < 0)
                r = why_errno(why, -errno, "cache_dir: %s", plain);
        if (r == 0)
                r = unpacked_write(&reading, into_fd, &n_bytes, why);
        if (r == 0 && renameat(dir_fd, unfinished, dir_fd, name) < 0)
                r = why_errno(why, -errno, "cache_dir: %s", plain);
        if (r == 0)
                r = unpacked_note(unpacking, file, n_bytes);
        if (r < 0 && into_fd >= 0)
                unlinkat(dir_fd, unfinished, 0);
        closep(&reading.fd);
        lookup_fini(&lookup);
        return r;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void unpack_some(void *userdata) {
        struct unpacking *unpacking = userdata;
        struct compressed *files = &unpacking->unpacked->files;
        size_t idx;

        while ((idx = atomic_fetch_add(&unpacking->next, 1)) < files->n && !unpacked_is_over(unpacking)) {
                struct why why;
                int r = files->list[idx].is_there ? 0 : cache_unpack_one(unpacking, &files->list[idx], &why);

                if (r == 0)
                        continue;
                pthread_mutex_lock(&unpacking->lock);
                if (unpacking->result == 0) {
                        unpacking->result = r;
                        unpacking->why = why;
                }
                pthread_mutex_unlock(&unpacking->lock);
                atomic_store(&unpacking->is_over, true);
        }
}

static void unpacked_tick(void *userdata) {
        struct unpacking *unpacking = userdata;
        const struct unpacked_terms *terms = unpacking->terms;

        if (terms->part)
                terms->part(terms->userdata, atomic_load(&unpacking->n_read), unpacking->unpacked->files.n_bytes, "B");
}

static int cache_unpack_all(struct unpacked *unpacked, const struct unpacked_terms *terms, struct why *why) {
        struct unpacking unpacking = { .unpacked = unpacked, .terms = terms };
        uint32_t n_threads = terms->n_threads < CREW_MAX ? terms->n_threads : CREW_MAX;
        int r;

        room_clear(unpacked->cache, unpacked->files.n_bytes);
        cache_folders_ask(unpacked->cache);
        pthread_mutex_lock(&unpacked->cache->lock);
        unpacking.n_room = unpacked->cache->limit > unpacked->cache->n_bytes
                                   ? unpacked->cache->limit - unpacked->cache->n_bytes
                                   : 0;
        pthread_mutex_unlock(&unpacked->cache->lock);
        pthread_mutex_init(&unpacking.lock, NULL);
        r = crew_run("unpack", n_threads > 0 ? n_threads : 1, unpack_some, TICK_NS, unpacked_tick, &unpacking);
        pthread_mutex_destroy(&unpacking.lock);
        if (r < 0)
                return why_errno(why, r, "%s: cannot start a thread", terms->root);
        if (unpacking.result == -EFBIG) {
                char limit[BYTES_TEXT_MAX];

                return why_set(why, -EFBIG, "%s; it is %s: raise it, or give cache_dir a larger disk",
                               unpacking.why.text, format_bytes(limit, unpacked->cache->limit));
        }
        if (unpacking.result < 0)
                return why_set(why, unpacking.result, "%s/%s", terms->root, unpacking.why.text);
        if (terms->cancel && atomic_load(terms->cancel))
                return why_set(why, -ECANCELED, "%s: unpacking was cancelled", terms->root);
        return 0;
}

/* ---- its folder -------------------------------------------------------------------------------------------------- */

static void unpacked_take(void *userdata, const struct journal_record *record, bool is_of_boot) {
        struct unpacked *unpacked = userdata;

        if (is_of_boot) /* else it may be a file that never reached the disk: unpacked again */
                compressed_mark(&unpacked->files, record->chunk, record->digest, record->n_bytes,
                                record->kind == JOURNAL_THERE);
}

/* What has come out of files that have gone or changed goes, and so does what the journal says of it. */
static int unpacked_tidy(struct unpacked *unpacked, const char *journal, struct why *why) {
        const struct compressed *files = &unpacked->files;
        uint64_t n_noted = cache_journal_bytes(journal), n_kept = 0;
        int r;

        compressed_remove_others(files, unpacked->files_fd);
        for (size_t i = 0; i < files->n; i++)
                n_kept += files->list[i].n_bytes;
        if (n_noted == n_kept)
                return 0;
        cache_journal_close(&unpacked->journal);
        unlink(journal);
        r = cache_journal_open(&unpacked->journal, journal, NO_LISTING, unpacked_take, unpacked, why);
        for (size_t i = 0; i < files->n && r == 0; i++) {
                const struct compressed_file *file = &files->list[i];
                struct journal_record record = { .chunk = file->number,
                                                 .n_bytes = file->n_bytes,
                                                 .digest = file->state };

                r = file->is_there ? cache_journal_add(&unpacked->journal, &record) : 0;
        }
        pthread_mutex_lock(&unpacked->cache->lock);
        unpacked->cache->n_bytes -= n_noted - n_kept;
        pthread_mutex_unlock(&unpacked->cache->lock);
        return r < 0 ? why_errno(why, r, "%s", journal) : 0;
}

static int unpacked_folder(struct unpacked *unpacked, const struct unpacked_terms *terms, struct why *why) {
        const char *folder = unpacked->opened.folder;
        char path[PATH_MAX], plain[PATH_MAX];
        int r;

        snprintf(path, sizeof(path), "%s/files", folder);
        if ((mkdir(folder, 0700) < 0 || mkdir(path, 0700) < 0) && errno != EEXIST)
                return why_errno(why, -errno, "cache_dir: %s", folder);
        mkdir(path, 0700);
        unpacked->files_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (unpacked->files_fd < 0)
                return why_errno(why, -errno, "cache_dir: %s", path);
        compressed_plain_path(&unpacked->files.list[0], plain);
        if (snprintf(unpacked->path, sizeof(unpacked->path), "%s/files%s%s", folder, terms->n_names == 1 ? "/" : "",
                     terms->n_names == 1 ? plain : "") >= (int)sizeof(unpacked->path))
                return why_errno(why, -ENAMETOOLONG, "cache_dir: %s", plain);
        snprintf(path, sizeof(path), "%s/journal", folder);
        r = cache_journal_open(&unpacked->journal, path, NO_LISTING, unpacked_take, unpacked, why);
        return r == 0 ? unpacked_tidy(unpacked, path, why) : r;
}

static void unpacked_free(struct unpacked *unpacked) {
        if (!unpacked)
                return;
        cache_journal_close(&unpacked->journal);
        closep(&unpacked->files_fd);
        closep(&unpacked->root_fd);
        compressed_fini(&unpacked->files);
        free(unpacked);
}

static void unpacked_freep(struct unpacked **unpacked) {
        unpacked_free(*unpacked);
}

/* Which folder it is: of the root and the names. */
static void unpacked_name(struct unpacked *unpacked, const struct unpacked_terms *terms) {
        XXH64_hash_t hash = XXH3_64bits(terms->root, strlen(terms->root));
        const char *slash = strrchr(terms->root, '/');
        char word[41] = "";
        size_t n = 0;

        for (size_t i = 0; i < terms->n_names; i++)
                hash = XXH3_64bits_withSeed(terms->names[i], strlen(terms->names[i]), hash);
        for (const char *at = slash ? slash + 1 : terms->root; *at && n + 1 < sizeof(word); at++)
                if ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9'))
                        word[n++] = *at;
        snprintf(unpacked->opened.folder, sizeof(unpacked->opened.folder), "%s/%s-unpacked-%016" PRIx64,
                 unpacked->cache->dir, word, (uint64_t)hash);
}

int cache_unpacked_open(struct cache *cache, const struct unpacked_terms *terms, struct unpacked **ret_unpacked,
                        struct why *why) {
        _cleanup_(unpacked_freep) struct unpacked *unpacked = calloc(1, sizeof(*unpacked));
        int r = cache_begin(cache, why);

        if (r == 0 && !unpacked)
                r = why_errno(why, -ENOMEM, "%s", terms->root);
        if (r < 0)
                return r;
        unpacked->cache = cache;
        unpacked->files_fd = unpacked->journal.fd = unpacked->root_fd = -1;
        r = compressed_find(terms, &unpacked->files, why);
        if (r < 0)
                return r;
        unpacked_name(unpacked, terms);
        r = cache_opened_begin(cache, &unpacked->opened, terms->cancel, why);
        if (r < 0)
                return r;
        r = unpacked_folder(unpacked, terms, why);
        if (r == 0)
                r = cache_unpack_all(unpacked, terms, why);
        cache_opened_ready(cache, &unpacked->opened);
        if (r < 0) {
                cache_opened_end(cache, &unpacked->opened);
                return r;
        }
        unpacked->root_fd = fcntl(terms->root_fd, F_DUPFD_CLOEXEC, 0); /* without it, no change is noticed */
        *ret_unpacked = TAKE_PTR(unpacked);
        return 0;
}

bool unpacked_is_current(const struct unpacked *unpacked) {
        return compressed_is_current(&unpacked->files, unpacked->root_fd);
}

void unpacked_unref(struct unpacked *unpacked) {
        if (!unpacked)
                return;
        cache_opened_end(unpacked->cache, &unpacked->opened);
        unpacked_free(unpacked);
}
