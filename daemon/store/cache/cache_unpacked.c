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

#include "daemon/store/cache/unpacked_private.h"
#include "proto/base/cleanup.h"

#define NO_LISTING "unpacked"

const char *unpacked_path(const struct unpacked *unpacked) {
        return unpacked->path;
}

bool unpacked_is_compressed(const char *name) {
        return compressed_plain_length(name) > 0;
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

static int unpacked_make_folder(struct unpacked *unpacked, const struct unpacked_terms *terms, struct why *why) {
        const char *folder = unpacked->opened.folder;
        char path[PATH_MAX], plain[PATH_MAX];
        int r;

        snprintf(path, sizeof(path), "%s/files", folder);
        if ((mkdir(folder, 0700) < 0 || mkdir(path, 0700) < 0) && errno != EEXIST)
                return why_errno(why, -errno, "cache_dir: %s", folder);
        mkdir(path, 0700);
        snprintf(unpacked->folder, sizeof(unpacked->folder), "%s", path);
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
        pthread_mutex_destroy(&unpacked->lock);
        pthread_cond_destroy(&unpacked->changed);
        free(unpacked->taken);
        free(unpacked->begun);
        free(unpacked->root);
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
        pthread_mutex_init(&unpacked->lock, NULL);
        pthread_cond_init(&unpacked->changed, NULL);
        r = compressed_find(terms, &unpacked->files, why);
        if (r < 0)
                return r;
        unpacked->root = strdup(terms->root);
        unpacked->taken = calloc(unpacked->files.n / 64 + 1, sizeof(*unpacked->taken));
        unpacked->begun = calloc(unpacked->files.n, sizeof(struct filling *));
        unpacked->root_fd = fcntl(terms->root_fd, F_DUPFD_CLOEXEC, 0);
        if (!unpacked->root || !unpacked->taken || !unpacked->begun || unpacked->root_fd < 0)
                return why_errno(why, -ENOMEM, "%s", terms->root);
        unpacked_name(unpacked, terms);
        r = cache_opened_begin(cache, &unpacked->opened, terms->cancel, why);
        if (r < 0)
                return r;
        r = unpacked_make_folder(unpacked, terms, why);
        if (r == 0)
                filling_prepare(unpacked, terms);
        if (r == 0 && !terms->arrival)
                r = filling_run(unpacked, terms, why);
        if (r < 0 || !terms->arrival)
                cache_opened_ready(cache, &unpacked->opened);
        if (r < 0) {
                cache_opened_end(cache, &unpacked->opened);
                return r;
        }
        *ret_unpacked = TAKE_PTR(unpacked);
        return 0;
}

const char *unpacked_folder(const struct unpacked *unpacked) {
        return unpacked->folder;
}

uint64_t unpacked_file_bytes(const struct unpacked *unpacked, size_t file) {
        return unpacked->files.list[file].stamp.n_bytes;
}

bool unpacked_was_packed(const struct unpacked *unpacked, size_t file) {
        return unpacked->files.list[file].n_plain > 0;
}

int unpacked_start(struct unpacked *unpacked, struct why *why) {
        return filling_start(unpacked, why);
}

size_t unpacked_n_files(const struct unpacked *unpacked) {
        return unpacked->files.n;
}

char *unpacked_file(const struct unpacked *unpacked, size_t file) {
        char plain[PATH_MAX];

        compressed_plain_path(&unpacked->files.list[file], plain);
        return strdup(plain);
}

bool unpacked_is_current(const struct unpacked *unpacked) {
        return unpacked->cached || compressed_is_current(&unpacked->files, unpacked->root_fd);
}

void unpacked_stop(struct unpacked *unpacked) {
        if (unpacked)
                filling_stop(unpacked);
}

void unpacked_unref(struct unpacked *unpacked) {
        if (!unpacked)
                return;
        filling_stop(unpacked);
        cache_opened_end(unpacked->cache, &unpacked->opened);
        unpacked_free(unpacked);
}
