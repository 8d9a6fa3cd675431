/* store/tree/tree.h: a version of a dataset on this node's disk, while it is made, checked and mended.
 *
 * Bytes arrive chunk by chunk. Each file is hashed as it grows; a chunk that was written is noted in the journal, with
 * a digest of its own, so that what a killed run has written is known and checked, not fetched again. Data and journal
 * are synced beside, in no order: what the journal claims after a power cut is read again before it counts. Files of
 * the version that is served now (or of the one that it was made from: stamp.source_version) whose content is the same
 * are linked, not copied or fetched. Archives (plan_file.unpack) lie in the spool, not in the version.
 *
 * A chunk is missing or present; a file is whole once all of it is present and its SHA-256 has been taken and is the
 * plan's. A file whose SHA-256 is not the plan's becomes missing again, all of its chunks, and its name and both
 * digests are told. Large files are whole or not chunk by chunk; of small ones that share a chunk some may be whole
 * (taken over from the version before) while the chunk is missing for the sake of the others: tree_file_is_whole().
 *
 * Threads: tree_write() from several, each with a chunk of its own; tree_read() from another one at the same time, for
 * chunks that are not missing; the rest while neither runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/plan/chunks.h"
#include "daemon/store/plan/plan.h"
#include "daemon/store/record/record_place.h"
#include "daemon/store/record/stamp.h"
#include "proto/base/why.h"

/* So many bytes that are not on the disk yet begin a sync beside, one a second at most; fewer after five seconds. What
 * a power cut can cost is what arrived since; a kill costs nothing that was written. */
#define TREE_SYNC_BYTES (32u << 20)

struct tree;

enum tree_event {
        TREE_LINKED, /* a file was taken over from the version before; `text` is its path */
        TREE_KEPT,   /* so many bytes of an earlier run were checked and are good; no text */
        TREE_BAD,    /* a file or chunk is not what it should be; `text` says which and why: it will be fetched again */
        TREE_WAITING, /* the disk is waited for; told about twice a second, on the caller's thread */
};

struct tree_options {
        const char *dataset;
        /* Any thread, several at once while files are checked; may be NULL. `text` may be NULL. */
        void (*event)(void *userdata, enum tree_event event, uint64_t n_bytes, const char *text);
        void *userdata;
        const _Atomic bool *cancel; /* may be NULL */
        bool read_only;             /* a dry run: look, make nothing, take no lock */
        int lock_fd;                /* of tree_lock() (lock.h): several trees of one run share it; -1: take it here */
};

/* Takes the lock, makes the version's folder, reads the journal, checks what an earlier run left (re-reads it, from the
 * disk and not from the page cache, with several threads: the pace of the disk), links what is unchanged. A version
 * that the stamp vouches for is believed if its files are there with their sizes; tree_verify() reads it. A dry run
 * believes the journal. The plan and chunks must outlive it. Returns 0; -EBUSY with `why` naming the process and host
 * that is at work; -EEXIST if the dataset's path is something that was not staged and is not an empty folder;
 * -ECANCELED; -ENOSPC; -EROFS; another errno. */
int tree_open(const struct place *place, const struct plan *plan, const struct chunks *chunks,
              const struct tree_options *options, struct tree **ret_tree, struct why *why);

/* Leaves what is there for the next run; gives the lock back. NULL is fine. */
void tree_close(struct tree *tree);

/* A bit a chunk, 1 = missing here; (chunks + 7) / 8 bytes, valid until the tree is closed, changed by write and verify.
 */
const uint8_t *tree_missing(const struct tree *tree);
bool tree_is_missing(const struct tree *tree, uint64_t idx_chunk); /* the same of one, also while others write */
bool tree_is_complete(const struct tree *tree); /* no chunk is missing, not even that of an empty file */

/* Counts them: looks at every chunk. */
uint64_t tree_n_missing_bytes(const struct tree *tree);

/* Space and inodes that the missing chunks take, with 1 % and 64 MiB to spare. Returns 0 or -ENOSPC with `why`:
 * numbers, and how much must be freed. */
int tree_check_space(struct tree *tree, struct why *why);

/* Writes a chunk that is missing (asserted). Chunks of a file should come in their order: what comes too early is read
 * again from the disk to be hashed. Blocks as the page cache does. Returns 0; TREE_BAD_FILE (positive): a file whose
 * SHA-256 is not the plan's is complete with this, `why` says so, and it is missing again (a large one: all of its
 * chunks; a small one: this chunk); or an errno with `why` naming the file (-ENOSPC, -EIO, -EROFS): the chunk stays
 * missing, others may go on. */
#define TREE_BAD_FILE 1
int tree_write(struct tree *tree, uint64_t idx_chunk, const uint8_t *bytes, struct why *why);

/* Reads a chunk that is not missing, for a node that lacks it; checks it (the first read of a large file that was
 * linked checks all of it). An errno with `why`; -EBADMSG if it is damaged or gone (it is missing then) or was missing.
 */
int tree_read(struct tree *tree, uint64_t idx_chunk, uint8_t *into, struct why *why);

/* Is this file whole here? A small one may be while its chunk is missing: then its bytes need not come from the origin,
 * tree_read_file() has them. */
bool tree_file_is_whole(const struct tree *tree, uint64_t idx_file);

/* Reads a whole file of CHUNK_BYTES at most and checks it. As tree_read(), and on its thread. */
int tree_read_file(struct tree *tree, uint64_t idx_file, uint8_t *into, struct why *why);

/* Takes a file that was made here (a shard, an unpacked file) from `from_path` into its place: hashed, renamed (copied
 * and removed, from another file system), its chunks present; of small files the chunk is when the last of them is
 * there. Returns 0; -EBADMSG if it is not what the plan says; another errno with `why`. Not beside tree_write(). */
int tree_adopt(struct tree *tree, uint64_t idx_file, const char *from_path, struct why *why);

/* Data and journal to the disk; and the version's manifest, if all files are whole. An error of the disk since the tree
 * was opened stays: what was lost is found by the next run, which reads the disk. */
int tree_sync(struct tree *tree, struct why *why);

/* Reads everything that is not missing again and hashes it, as `--verify` does: from the disk, not from the page cache.
 * What is bad becomes missing (TREE_BAD events; TREE_KEPT for the rest). Returns the number of files that are bad, or
 * an errno. */
int64_t tree_verify(struct tree *tree, struct why *why);

/* SHA-256 of a file that is whole (asserted), as it was written (32 bytes). For the manifest that is kept. */
const uint8_t *tree_sha256(const struct tree *tree, uint64_t idx_file);

/* Descriptor of the version's folder (-1 in a dry run that found none), and its path. They stay the tree's. */
int tree_root_fd(const struct tree *tree);
const char *tree_root(const struct tree *tree);

/* Where an archive lies while it is unpacked: descriptor for reading, the caller's (close). Errno. */
int tree_spool_open(const struct tree *tree, uint64_t idx_file, struct why *why);

/* Everything to the disk, the manifest written, the link swapped, the stamp written, and all versions removed but this
 * one, the one that was stamped before, and stamp->source_version. For when all nodes are ready. `stamp` holds what the
 * caller knows (index, format, n_nodes, prepare; source and source_version if they are not this version's own); the
 * rest is filled in. Each step may be repeated: after a kill, publish again. -EINVAL if something is missing; -EEXIST
 * if something else has come to the dataset's path; another errno. */
int tree_publish(struct tree *tree, struct stamp *stamp, struct why *why);
