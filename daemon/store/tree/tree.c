#include "daemon/store/tree/tree.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/store/tree/lock.h"
#include "daemon/store/tree/tree_private.h"
#include "proto/base/cleanup.h"

void tree_tell(struct tree *tree, enum tree_event event, uint64_t n_bytes, const char *text) {
        if (tree->options.event)
                tree->options.event(tree->options.userdata, event, n_bytes, text);
}

void tree_tell_waiting(void *userdata) {
        tree_tell(userdata, TREE_WAITING, 0, NULL);
}

bool tree_is_cancelled(const struct tree *tree) {
        return tree->options.cancel && *tree->options.cancel;
}

void roots_init(struct roots *roots, const struct tree *tree) {
        roots->version = LOOKUP_OF(tree->root_fd);
        roots->spool = LOOKUP_OF(tree->spool_fd);
}

void roots_fini(struct roots *roots) {
        lookup_fini(&roots->version);
        lookup_fini(&roots->spool);
}

struct lookup *roots_for(struct roots *roots, const struct plan_file *file) {
        return file->unpack ? &roots->spool : &roots->version;
}

const char *tree_root(const struct tree *tree) {
        return tree->root_path;
}

int tree_root_fd(const struct tree *tree) {
        return tree->root_fd;
}

int tree_spool_open(const struct tree *tree, uint64_t idx_file, struct why *why) {
        const struct plan_file *file = plan_file(tree->plan, idx_file);
        struct roots roots;
        int fd;

        roots_init(&roots, tree);
        fd = lookup_open(roots_for(&roots, file), file->path, O_RDONLY);
        roots_fini(&roots);
        return fd < 0 ? why_errno(why, fd, "%s", file->path) : fd;
}

const uint8_t *tree_missing(const struct tree *tree) {
        return tree->state.missing;
}

bool tree_is_missing(const struct tree *tree, uint64_t idx_chunk) {
        return state_is_missing(&tree->state, idx_chunk);
}

uint64_t tree_n_missing_bytes(const struct tree *tree) {
        uint64_t n_bytes = 0;

        for (uint64_t i = 0; i < chunks_count(tree->chunks); i++)
                n_bytes += state_is_missing(&tree->state, i) ? chunks_get(tree->chunks, i).n_bytes : 0;
        return n_bytes;
}

bool tree_is_complete(const struct tree *tree) {
        uint64_t n_chunks = chunks_count(tree->chunks);

        return state_first_missing(&tree->state, 0, n_chunks) == n_chunks;
}

bool tree_file_is_whole(const struct tree *tree, uint64_t idx_file) {
        return state_is_whole(&tree->state, idx_file);
}

const uint8_t *tree_sha256(const struct tree *tree, uint64_t idx_file) {
        assert(state_is_whole(&tree->state, idx_file));
        return state_expected(&tree->state, idx_file);
}

void tree_forget_file(struct tree *tree, uint64_t idx_file) {
        uint64_t first, n = chunks_of_file(tree->chunks, idx_file, &first);

        for (uint64_t i = first; i < first + n; i++)
                if (digest128_is_known(state_digest(&tree->state, i)))
                        (void)journal_note(&tree->journal, i,
                                           (struct digest128){ 0 }); /* else the next run finds out */
        state_forget_file(&tree->state, idx_file);
}

/* ---- folders ------------------------------------------------------------------------------------------------- */

static int tree_open_folder(const struct tree *tree, const char *suffix, int *ret_fd, struct why *why) {
        char path[PATH_MAX];
        int r = place_file(&tree->place, tree->version, suffix, path);

        if (r < 0)
                return why_errno(why, r, "%s", tree->place.folder);
        if (!tree->options.read_only && mkdir(path, 0755) < 0 && errno != EEXIST)
                return why_errno(why, -errno, "%s", path);
        *ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (*ret_fd < 0 && !(tree->options.read_only && errno == ENOENT))
                return why_errno(why, -errno, "%s", path);
        return 0;
}

static int open_folders(struct tree *tree, struct why *why) {
        int r;

        r = place_file(&tree->place, tree->version, "", tree->root_path);
        if (r < 0)
                return why_errno(why, r, "%s", tree->place.folder);
        tree->folder_fd = open(tree->place.folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (tree->folder_fd < 0 && !(tree->options.read_only && errno == ENOENT))
                return why_errno(why, -errno, "%s", tree->place.folder);
        r = tree_open_folder(tree, "", &tree->root_fd, why);
        if (r == 0 && plan_has_archives(tree->plan))
                r = tree_open_folder(tree, ".spool", &tree->spool_fd, why);
        roots_init(&tree->write_roots, tree);
        roots_init(&tree->read_roots, tree);
        return r;
}

/* ---- what is known ------------------------------------------------------------------------------------------- */

static int tree_make_room(struct tree *tree) {
        int r = state_init(&tree->state, tree->plan, tree->chunks);

        tree->scratch = tree->options.read_only ? NULL : malloc(CHUNK_BYTES);
        if (r < 0 || (!tree->options.read_only && !tree->scratch))
                return -ENOMEM;
        return sha256_init(&tree->sha);
}

/* What the journal claims counts as present, until it has been looked at. */
static void begin_with_claims(struct tree *tree) {
        for (uint64_t i = 0; i < chunks_count(tree->chunks); i++) {
                struct digest128 claimed = tree->state.digests[i];

                state_set_missing(&tree->state, i);
                if (digest128_is_known(claimed))
                        state_set_present(&tree->state, i, claimed);
        }
}

static bool is_vouched_for(const struct tree *tree, const struct stamp *stamp) {
        const char *digest = plan_digest(tree->plan);

        return (strcmp(stamp->version, tree->version) == 0 && strcmp(stamp->manifest, digest) == 0) ||
               (strcmp(stamp->source_version, tree->version) == 0 && strcmp(stamp->source, digest) == 0);
}

static int tree_take_sha256(void *userdata, uint64_t idx_file, const struct plan_file *there) {
        struct tree *tree = userdata;

        if (there->sha256 && !plan_file(tree->plan, idx_file)->sha256)
                state_set_whole(&tree->state, idx_file, there->sha256);
        return tree_is_cancelled(tree) ? -ECANCELED : 0;
}

/* Is a file there, as long as it should be? A broken one is told, and its chunks are missing. */
static void tree_look_at_file(struct tree *tree, uint64_t idx_file) {
        const struct plan_file *file = plan_file(tree->plan, idx_file);
        struct stat status = { 0 };
        struct why text;
        uint64_t first, n;
        int r = lookup_stat(roots_for(&tree->write_roots, file), file->path, &status);

        if (r == 0 && S_ISREG(status.st_mode) && (uint64_t)status.st_size == file->n_bytes) {
                if (file->sha256)
                        state_set_whole(&tree->state, idx_file, file->sha256);
                if (state_is_whole(&tree->state, idx_file))
                        return;
                why_set(&text, 0, "%s: its SHA-256 is no longer known", file->path);
        } else if (r < 0)
                why_errno(&text, r, "%s", file->path);
        else
                why_set(&text, 0, "%s is no longer a file of %llu bytes", file->path,
                        (unsigned long long)file->n_bytes);
        state_set_broken(&tree->state, idx_file);
        n = chunks_of_file(tree->chunks, idx_file, &first);
        for (uint64_t i = first; i < first + n; i++)
                state_set_missing(&tree->state, i);
        tree_tell(tree, TREE_BAD, file->n_bytes, text.text);
}

/* The stamp was written when all of it was on the disk and verified. */
static int believe_stamp(struct tree *tree, struct why *why) {
        int r = 0;

        for (uint64_t i = 0; i < chunks_count(tree->chunks); i++)
                state_set_present(&tree->state, i, tree->state.digests[i]);
        if (tree->state.sha256s)
                r = manifest_each(tree, tree->version, tree_take_sha256, tree, why);
        if (r < 0 && r != -ENOENT && r != -EBADMSG)
                return r;
        for (uint64_t i = 0; i < plan_n_files(tree->plan); i++) {
                tree_look_at_file(tree, i);
                if (tree_is_cancelled(tree))
                        return -ECANCELED;
        }
        return 0;
}

/* Returns 0, or 1 if the journal does not say what is known. */
static int tree_find_out(struct tree *tree, const char *journal_path, struct why *why) {
        struct stamp stamp = { 0 };
        int64_t n_records, n_known = 0, n_bad;
        int r;

        n_records = journal_read(journal_path, plan_state(tree->plan), chunks_count(tree->chunks), tree->state.digests,
                                 why);
        if (n_records < 0)
                return (int)n_records;
        begin_with_claims(tree);
        r = stamp_read(&tree->place, &stamp, why);
        if (r == 0 && is_vouched_for(tree, &stamp)) {
                r = believe_stamp(tree, why);
                if (r < 0)
                        return r;
        } else if (!tree->options.read_only) {
                n_bad = tree_verify(tree, why);
                if (n_bad < 0)
                        return (int)n_bad;
        }
        if (r == 0) { /* there is a stamp, so there is a version */
                r = reuse_versions(tree, &stamp, why);
                if (r < 0)
                        return r;
        }
        for (uint64_t i = 0; i < chunks_count(tree->chunks); i++)
                n_known += digest128_is_known(tree->state.digests[i]);
        return n_records != n_known || n_records == 0;
}

static int open_journal(struct tree *tree, struct why *why) {
        const char *state = plan_state(tree->plan);
        uint64_t n_chunks = chunks_count(tree->chunks);
        char path[PATH_MAX];
        int r = place_file(&tree->place, tree->version, ".journal", path);

        if (r < 0)
                return why_errno(why, r, "%s", tree->place.folder);
        r = tree_find_out(tree, path, why);
        if (r < 0 || tree->options.read_only)
                return r;
        if (r == 0)
                return journal_continue(&tree->journal, path, state, n_chunks, why);
        return journal_begin(&tree->journal, path, state, n_chunks, tree->state.digests, why);
}

/* ---- opening and closing ------------------------------------------------------------------------------------- */

static int tree_start_threads(struct tree *tree, struct why *why) {
        int r = syncer_start(&tree->syncer, tree->folder_fd);

        return r < 0 ? why_errno(why, r, "the thread that syncs cannot be started") : 0;
}

static int tree_open_tree(struct tree *tree, struct why *why) {
        int r;

        r = look_at_path(&tree->place, why);
        if (r < 0)
                return r;
        if (!tree->options.read_only && tree->options.lock_fd < 0) {
                tree->lock_fd = tree_lock(&tree->place, why);
                if (tree->lock_fd < 0)
                        return tree->lock_fd;
        }
        r = open_folders(tree, why);
        if (r < 0)
                return r;
        r = tree_make_room(tree);
        if (r < 0)
                return why_errno(why, r, "%s: noting what is there", tree->place.path);
        r = open_journal(tree, why);
        if (r < 0)
                return r;
        return tree->options.read_only ? 0 : tree_start_threads(tree, why);
}

static void tree_closep(struct tree **tree) {
        tree_close(*tree);
}

int tree_open(const struct place *place, const struct plan *plan, const struct chunks *chunks,
              const struct tree_options *options, struct tree **ret_tree, struct why *why) {
        _cleanup_(tree_closep) struct tree *tree = calloc(1, sizeof(*tree));
        int r;

        if (!tree)
                return -ENOMEM;
        tree->place = *place;
        tree->plan = plan;
        tree->chunks = chunks;
        tree->options = *options;
        tree->lock_fd = tree->folder_fd = tree->root_fd = tree->spool_fd = -1;
        tree->journal = JOURNAL_NONE;
        TAILQ_INIT(&tree->growing);
        pthread_mutex_init(&tree->lock, NULL);
        pthread_cond_init(&tree->hashed, NULL);
        roots_init(&tree->write_roots, tree);
        roots_init(&tree->read_roots, tree);
        place_version(plan_digest(plan), tree->version);
        snprintf(tree->part_name, sizeof(tree->part_name), "%s.part", tree->version);

        r = tree_open_tree(tree, why);
        if (r < 0)
                return r;
        *ret_tree = TAKE_PTR(tree);
        return 0;
}

void tree_close(struct tree *tree) {
        if (!tree)
                return;
        syncer_stop(&tree->syncer);
        growing_drop_all(tree);
        journal_close(&tree->journal);
        roots_fini(&tree->write_roots);
        roots_fini(&tree->read_roots);
        sha256_fini(&tree->sha);
        free(tree->scratch);
        state_fini(&tree->state);
        closep(&tree->spool_fd);
        closep(&tree->root_fd);
        closep(&tree->folder_fd);
        closep(&tree->lock_fd);
        pthread_cond_destroy(&tree->hashed);
        pthread_mutex_destroy(&tree->lock);
        free(tree);
}

int tree_sync(struct tree *tree, struct why *why) {
        int r = syncer_wait(&tree->syncer, tree_tell_waiting, tree);

        if (r < 0)
                return why_errno(why, r, "%s: not all that was written has reached the disk; run it again",
                                 tree->place.folder);
        for (uint64_t i = 0; i < plan_n_files(tree->plan); i++)
                if (!state_is_whole(&tree->state, i))
                        return 0;
        return manifest_write(tree, why);
}
