/* staging/tree/private.h: what the files of the tree share.
 *
 *   tree.c     opens and closes; what is known when     check*.c    reads again what lies on the disk
 *   lock.c     one run at a time                        write.c     chunks into files
 *   state.c    missing, present, whole                  growing.c   large files that are not whole yet
 *   paths.c    names, never through links               read.c      chunks out of files
 *   reuse.c    links to the version before              manifest.c  the text that is kept of a version
 *   adopt.c    files that were made here                publish.c   the last steps; sweep.c after them
 *
 * What holds at every moment, also when the process is killed or the power fails between two instructions:
 *   - What is served is what the stamp and the link name, and that was on the disk before they were.
 *   - A file that has another name, too (in another version), is never written to unless a damaged part of it is
 * mended: what is new or changed becomes a new file.
 *   - The journal only claims. What it claims is read again by the next run before anybody relies on it; only what a
 *     stamp vouches for is believed, and even then each chunk is checked when it is read for another node.
 *   - A chunk counts as present once it is written, and a file as whole once SHA-256 has been taken over all of it.
 *     A version is published when no chunk is missing and all files are whole. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/queue.h"
#include "daemon/staging/tree/digest.h"
#include "daemon/staging/tree/helper.h"
#include "daemon/staging/tree/journal.h"
#include "daemon/staging/tree/paths.h"
#include "daemon/staging/tree/tree.h"

/* Where files are: in the version's folder, archives in the spool. A thread has its own. */
struct roots {
        struct paths version, spool;
};

/* A large file that is not whole: SHA-256 of its beginning. */
struct growing {
        TAILQ_ENTRY(growing) entry;
        uint64_t idx_file;
        int fd;            /* -1: too many others are open */
        struct sha256 sha; /* of the first n_hashed bytes */
        uint64_t n_hashed;
        uint64_t idx_looked; /* no chunk of the file before this one was missing; looked at again in the end */
};

TAILQ_HEAD(growing_list, growing);

struct tree {
        struct place place;
        const struct plan *plan;
        const struct chunks *chunks;
        struct tree_options options;
        char version[PLACE_VERSION_SIZE];
        char root_path[PATH_MAX];
        char part_name[64];               /* in the folder: what becomes a file by rename; one at a time */
        int lock_fd;                      /* -1: none, or not ours */
        int folder_fd, root_fd, spool_fd; /* -1: not there (dry run; no archives) */
        uint64_t last_word_ns;            /* when the last event was told */

        pthread_mutex_t lock; /* covers the states below; held for some instructions, for one file's bits at most */
        uint8_t *missing;     /* a bit a chunk; also read without the lock by the caller */
        uint8_t *whole;       /* a bit a file: its SHA-256 was taken and is right */
        uint64_t n_missing_bytes;
        struct digest128 *digests; /* a chunk */
        uint8_t *sha256s;          /* SHA256_BYTES a file; NULL if the plan says them all */
        struct journal journal;

        /* The writing thread's. */
        struct roots write_roots;
        struct growing_list growing; /* the one that was used last is the first */
        uint32_t n_growing;
        uint8_t *scratch; /* CHUNK_BYTES */
        struct helper helper;
        struct syncer syncer;
        struct sha256 sha; /* the helper's, while it runs */

        /* The reading thread's. */
        struct roots read_roots;
};

static inline bool file_is_large(const struct plan_file *file) {
        return file->n_bytes > CHUNK_BYTES;
}

/* Never told from another thread than the caller's of the public function. */
void tree_tell(struct tree *tree, enum tree_event event, uint64_t n_bytes, const char *text);
void tree_tell_waiting(void *tree); /* twice a second at most, and only after silence */
bool tree_is_cancelled(const struct tree *tree);

void roots_init(struct roots *roots, const struct tree *tree);
void roots_fini(struct roots *roots);
struct paths *roots_for(struct roots *roots, const struct plan_file *file);

/* ---- state.c: any thread ------------------------------------------------------------------------------------ */

bool state_is_missing(const struct tree *tree, uint64_t idx_chunk);
bool state_is_whole(const struct tree *tree, uint64_t idx_file);
struct digest128 state_digest(struct tree *tree, uint64_t idx_chunk);

/* Written, with this digest (or one that is not known: of a file that was linked). Notes nothing in the journal. */
void state_set_present(struct tree *tree, uint64_t idx_chunk, struct digest128 digest);
void state_set_missing(struct tree *tree, uint64_t idx_chunk);
void state_set_whole(struct tree *tree, uint64_t idx_file, const uint8_t sha256[SHA256_BYTES]);
void state_set_broken(struct tree *tree, uint64_t idx_file);

/* All chunks of a large file are missing, and the journal knows. Nothing is known of it but the plan's word. */
void state_forget_file(struct tree *tree, uint64_t idx_file);

/* The first chunk of [first, end) that is missing, or end. */
uint64_t state_first_missing(const struct tree *tree, uint64_t first, uint64_t end);
bool state_files_are_whole(const struct tree *tree, const struct chunk *chunk);

/* What the file must have: the plan's word, else what was found when it was whole (until it is forgotten: a file that
 * is fetched from its first byte on may be another one); NULL: nothing is known. */
const uint8_t *state_expected(const struct tree *tree, uint64_t idx_file);

/* ---- growing.c: the writing thread -------------------------------------------------------------------------- */

/* The file, open for writing, made and its space taken if it is not there yet. Valid until the next call. */
int growing_get(struct tree *tree, uint64_t idx_file, struct growing **ret_growing, struct why *why);

/* SHA-256 of a file's beginning, as it was found on the disk; takes over what is in `sha` (or lets it go). */
void growing_begin(struct tree *tree, uint64_t idx_file, struct sha256 *sha, uint64_t n_hashed);
void growing_drop(struct tree *tree, uint64_t idx_file);
void growing_drop_all(struct tree *tree);

/* Hashes what lies on the disk behind n_hashed and before `end`, up to the first chunk that is missing. One that cannot
 * be read is missing from then on. 0, -ECANCELED. */
int growing_catch_up(struct tree *tree, struct growing *growing, uint64_t end);

/* ---- read.c ------------------------------------------------------------------------------------------------- */

/* The page cache may hold what the disk has lost: who checks lets go of it first. What is dirty stays, and syncfs()
 * will tell of it. */
enum read_from {
        FROM_ANYWHERE,
        FROM_DISK,
};

/* Reads one file's bytes. -EBADMSG if it is no regular file or not of its size; another errno. */
int read_file_bytes(struct roots *roots, const struct plan_file *file, enum read_from from, uint8_t *into);

/* Is this what a damaged disk or folder says, so that writing the file again may help? */
bool read_error_is_damage(int error);

/* ---- check.c, check_all.c
 * ------------------------------------------------------------------------------------------------ */

/* What checking needs beside the tree; `say` may be called from any thread. */
struct checking {
        struct tree *tree;
        struct roots roots;
        uint8_t *buffer; /* CHUNK_BYTES */
        struct sha256 sha;
        bool may_grow; /* nobody writes: files that are not whole may be handed over to the growing ones */
        void (*say)(void *userdata, enum tree_event event, uint64_t n_bytes, const struct why *text);
        void *userdata;
};

int checking_init(struct checking *checking, struct tree *tree);
void checking_fini(struct checking *checking);

/* All chunks of a large file that are not missing. Returns 1 if something is bad (and missing now), 0, -ECANCELED. */
int check_large(struct checking *checking, uint64_t idx_file);

/* A chunk of small files. Returns how many of them are bad; then it is missing. */
int check_small(struct checking *checking, uint64_t idx_chunk);

/* Everything that is not missing, with several threads; tells events. The number of bad files, or an errno. */
int64_t check_all(struct tree *tree, struct why *why);

/* ---- write.c ------------------------------------------------------------------------------------------------ */

/* Begins the file that becomes another by put_in_place(): descriptor, the caller's. */
int part_begin(struct tree *tree);
int part_put_in_place(struct tree *tree, const struct plan_file *file);

/* ---- reuse.c, manifest.c ------------------------------------------------------------------------------- */

/* Links what did not change from the versions that the stamp names. */
int reuse_versions(struct tree *tree, const struct stamp *stamp, struct why *why);

/* A copy of an open file as the plan's, through a new file. */
int copy_into_place(struct tree *tree, int from_fd, const struct plan_file *file);

/* FOLDER/VERSION.manifest: the plan's text with the SHA-256 of all files. All must be whole. */
int manifest_write(struct tree *tree, struct why *why);

/* Calls entry() for each file of a version's manifest that the plan has, too (by path); in order. -ENOENT if it has
 * none; -EBADMSG with `why`. A result of entry() that is not 0 ends it. */
int manifest_each(struct tree *tree, const char *version,
                  int (*entry)(void *userdata, uint64_t idx_file, const struct plan_file *there), void *userdata,
                  struct why *why);

/* ---- lock.c, sweep.c ----------------------------------------------------------------------------------- */

enum path_kind {
        PATH_ABSENT,
        PATH_OURS,  /* a link into the folder */
        PATH_EMPTY, /* a folder with nothing in it */
};

/* What is at the dataset's path. -EEXIST with `why` if it is something that must not be replaced. */
int look_at_path(const struct place *place, struct why *why);

/* Removes the versions that are none of these (n names, "" for none), and what lies beside them. What cannot be removed
 * is said in the log and stays. */
void sweep_versions(struct tree *tree, const char *const *keep, size_t n_keep);
