/* store/tree/tree_private.h: what the files of the tree share.
 *
 *   tree.c          opens and closes; what is known when    check.c          reads again what lies on the disk
 *   tree_write.c    chunks into files                       tree_growing.c   large files that are not whole yet
 *   tree_read.c     chunks out of files                     tree_local.c     files that are on this node already
 *   tree_space.c    is there room?                          tree_manifest.c  the text that is kept of a version
 *   tree_publish.c  the last steps
 *
 * With headers of their own: state (missing, present, whole), journal, digest, lookup (names, never through links),
 * syncer (a thread), lock (one run at a time), sweep (old versions).
 *
 * What holds at every moment, also when the process is killed or the power fails between two instructions:
 *   - What is served is what the stamp and the link name, and that was on the disk before they were.
 *   - A file that has another name, too (in another version), is never written to unless a damaged part of it is
 *     mended: what is new or changed becomes a new file.
 *   - The journal only claims. What it claims is read again by the next run before anybody relies on it; only what a
 *     stamp vouches for is believed, and even then each chunk is checked when it is read for another node.
 *   - A chunk counts as present once it is written, and a file as whole once SHA-256 has been taken over all of it.
 *     A version is published when no chunk is missing and all files are whole. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/threads/queue.h"
#include "daemon/store/plan/digest.h"
#include "daemon/store/plan/lookup.h"
#include "daemon/store/tree/journal.h"
#include "daemon/store/tree/syncer.h"
#include "daemon/store/tree/tree.h"
#include "daemon/store/tree/tree_state.h"

/* Where files are: in the version's folder, archives in the spool. A thread has its own. */
struct roots {
        struct lookup version, spool;
};

/* A large file that is not whole: SHA-256 of its beginning. */
struct growing_file {
        TAILQ_ENTRY(growing_file) entry;
        uint64_t idx_file;
        int fd;            /* -1: not opened yet */
        struct sha256 sha; /* of the first n_hashed bytes */
        uint64_t n_hashed;
        uint64_t n_claimed;  /* bytes right after those that threads are about to hash, in turn */
        uint32_t n_users;    /* threads that write a part of it; it is not dropped meanwhile */
        uint64_t idx_looked; /* no chunk of the file before this one was missing; looked at again in the end */
};

TAILQ_HEAD(growing_list, growing_file);

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

        struct state state;
        struct journal journal;

        pthread_mutex_t lock;  /* what the writing threads share, up to scratch; before all other locks */
        pthread_cond_t hashed; /* some growing file's n_hashed or n_claimed changed */
        struct roots write_roots;
        struct growing_list growing; /* the one that was used last is the first */
        uint32_t n_growing;
        uint8_t *scratch; /* CHUNK_BYTES */
        struct syncer syncer;
        struct sha256 sha; /* of files that are adopted */

        /* The reading thread's. */
        struct roots read_roots;
};

static inline bool file_is_large(const struct plan_file *file) {
        return file->n_bytes > CHUNK_BYTES;
}

void tree_tell(struct tree *tree, enum tree_event event, uint64_t n_bytes, const char *text);
void tree_tell_waiting(void *tree);
bool tree_is_cancelled(const struct tree *tree);

/* All chunks of a large file are missing, and the journal knows. Nothing is known of it but the plan's word. */
void tree_forget_file(struct tree *tree, uint64_t idx_file);

void roots_init(struct roots *roots, const struct tree *tree);
void roots_fini(struct roots *roots);
struct lookup *roots_for(struct roots *roots, const struct plan_file *file);

/* ---- tree_growing.c: with the lock held -------------------------------------------------------------------------- */

/* The file, open for writing, made and its space taken if it is not there yet. Valid until the next call. */
int growing_get(struct tree *tree, uint64_t idx_file, struct growing_file **ret_growing, struct why *why);

/* SHA-256 of a file's beginning, as it was found on the disk; takes over what is in `sha` (or lets it go). */
void growing_begin(struct tree *tree, uint64_t idx_file, struct sha256 *sha, uint64_t n_hashed);
void growing_drop(struct tree *tree, uint64_t idx_file);
void growing_drop_all(struct tree *tree);

/* Hashes what lies on the disk between n_hashed and `end`, up to the first chunk that is missing. One that cannot
 * be read is missing from then on. 0, -ECANCELED. */
int growing_catch_up(struct tree *tree, struct growing_file *growing, uint64_t end);

/* ---- tree_read.c ------------------------------------------------------------------------------------------------ */

/* The page cache may hold what the disk has lost: who checks lets go of it first. What is dirty stays, and syncfs()
 * will tell of it. */
enum read_from {
        FROM_ANYWHERE,
        FROM_DISK,
};

/* Reads one file's bytes. -EBADMSG if it is not a regular file or has another size; another errno. */
int read_file_bytes(struct roots *roots, const struct plan_file *file, enum read_from from, uint8_t *into);

/* ---- check.c ----------------------------------------------------------------------------------------------- */

/* What checking needs beside the tree, for one thread. */
struct checking {
        struct tree *tree;
        struct roots roots;
        uint8_t *buffer; /* CHUNK_BYTES */
        struct sha256 sha;
        bool may_grow;  /* nobody writes: files that are not whole may be handed over to the growing ones */
        bool is_silent; /* tells no events */
};

int checking_init(struct checking *checking, struct tree *tree);
void checking_fini(struct checking *checking);

/* All chunks of a large file that are not missing. Returns 1 if something is bad (missing from now on), 0, -ECANCELED.
 */
int check_large(struct checking *checking, uint64_t idx_file);

/* "a.jpg: its SHA-256 should be ... and is ..." */
void why_digests(struct why *why, const struct plan_file *file, const uint8_t *expected, const uint8_t *found);

/* ---- tree_write.c ----------------------------------------------------------------------------------------------- */

/* Begins the file that becomes another by put_in_place(): descriptor, the caller's. */
int part_begin(struct tree *tree);
int part_put_in_place(struct tree *tree, const struct plan_file *file);

/* ---- tree_local.c, tree_manifest.c ------------------------------------------------------------------------------- */

/* Links what did not change from the versions that the stamp names. */
int reuse_versions(struct tree *tree, const struct stamp *stamp, struct why *why);

/* FOLDER/VERSION.manifest: the plan's text with the SHA-256 of all files. All must be whole. */
int manifest_write(struct tree *tree, struct why *why);

/* Calls entry() for each file of a version's manifest that the plan has, too (by path); in order. -ENOENT if it has
 * none; -EBADMSG with `why`. A result of entry() that is not 0 ends it. */
int manifest_each(struct tree *tree, const char *version,
                  int (*entry)(void *userdata, uint64_t idx_file, const struct plan_file *there), void *userdata,
                  struct why *why);
