/* stage/tree.h: a version of a dataset on this node's disk, while it is made, checked and mended.
 *
 * Bytes arrive chunk by chunk. Each file is hashed as it grows; a chunk is noted in the journal once its bytes have
 * reached the disk (synced in groups), with a digest of its own, so that what a killed run has written is known and
 * checked, not fetched again. Files of the version that is served now (or of the one that it
 * was made from: stamp.source_version) whose content is the same are linked, not copied or fetched. Archives
 * (plan_file.unpack) lie in the spool, not in the version.
 *
 * A chunk is missing, present (written, not yet checked against its file's SHA-256), or good. A file whose SHA-256 is
 * not the plan's becomes missing again, all of its chunks, and its name and both digests are told.
 *
 * Threads: tree_write() and tree_sync() from one thread; tree_read() from another at the same time, for chunks that are
 * not missing; the rest while neither runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/why.h"
#include "daemon/stage/chunks.h"
#include "daemon/stage/place.h"
#include "daemon/stage/plan.h"
#include "daemon/stage/stamp.h"

#define TREE_SYNC_BYTES (32u << 20) /* journal and data reach the disk at least every so many: what a kill can cost */

struct tree;

enum tree_event {
        TREE_LINKED, /* a file was taken over from the version before */
        TREE_KEPT,   /* a chunk of an earlier run was checked and is good */
        TREE_BAD,    /* a file or chunk is not what it should be; `text` says which and why: it will be fetched again */
};

struct tree_options {
        const char *dataset;
        void (*event)(void *userdata, enum tree_event event, uint64_t n_bytes, const char *text); /* may be NULL */
        void *userdata;
        const _Atomic bool *cancel; /* may be NULL */
        bool read_only;             /* a dry run: look, make nothing, take no lock */
        int lock_fd;                /* of tree_lock(): several trees of one run share it; -1: take it here */
};

/* The right to change what lies at this place: one run at a time. Makes the folder. Returns a descriptor (close gives
 * it back); -EBUSY with `why` naming the process and host that is at work; another errno. */
int tree_lock(const struct place *place, struct why *why);

/* Takes the lock, makes the version's folder and its directories, reads the journal, checks what an earlier run left
 * (re-reads it: the pace of the disk), links what is unchanged. The plan and chunks must outlive it. Returns 0; -EBUSY
 * with `why` naming the process and host that is at work; -EEXIST if the dataset's path is a folder that was not staged
 * and is not empty; -ENOSPC; -EROFS; another errno. */
int tree_open(const struct place *place, const struct plan *plan, const struct chunks *chunks,
              const struct tree_options *options, struct tree **ret_tree, struct why *why);

/* Leaves what is there for the next run; gives the lock back. NULL is fine. */
void tree_close(struct tree *tree);
void tree_closep(struct tree **tree);

/* A bit a chunk, 1 = missing here; (chunks + 7) / 8 bytes, valid until the tree is closed, changed by write and verify.
 */
const uint8_t *tree_missing(const struct tree *tree);
uint64_t tree_n_missing_bytes(const struct tree *tree);

/* Space and inodes that the missing chunks take, with 1 % and 64 MiB to spare and `n_more_bytes` besides (archives
 * unpacked). Returns 0 or -ENOSPC with `why`: numbers, and how much must be freed. */
int tree_check_space(const struct tree *tree, uint64_t n_more_bytes, struct why *why);

/* Writes a chunk that is missing; in the order of the chunks within a file (asserted). Blocks for the disk. Returns 0;
 * TREE_BAD_FILE (positive): this completed a file whose SHA-256 is not the plan's, `why` says so, its chunks are
 * missing again; or an errno with `why` naming the file (-ENOSPC, -EIO, -EROFS): the chunk stays missing, others may go
 * on. */
#define TREE_BAD_FILE 1
int tree_write(struct tree *tree, uint64_t idx_chunk, const uint8_t *bytes, struct why *why);

/* Reads a chunk that is not missing, for a node that lacks it; checks it. An errno with `why`; -EBADMSG if it is
 * damaged (it is missing then). */
int tree_read(struct tree *tree, uint64_t idx_chunk, uint8_t *into, struct why *why);

/* Takes a file that was made here (a shard, an unpacked file) from `from_path` into its place: hashed, renamed, its
 * chunks good. Returns 0; -EBADMSG if it is not what the plan says; another errno with `why`. Not beside tree_write().
 */
int tree_adopt(struct tree *tree, uint64_t idx_file, const char *from_path, struct why *why);

/* Data and journal to the disk. */
int tree_sync(struct tree *tree, struct why *why);

/* Reads everything again and hashes it, as `--verify` does; what is bad becomes missing (TREE_BAD events). Returns the
 * number of files that are bad, or an errno. */
int64_t tree_verify(struct tree *tree, struct why *why);

/* SHA-256 of a file that is whole, as it was written (32 bytes). For the manifest that is kept. */
const uint8_t *tree_sha256(const struct tree *tree, uint64_t idx_file);

/* Descriptor (O_PATH) of the version's folder, and its path. They stay the tree's. */
int tree_root_fd(const struct tree *tree);
const char *tree_root(const struct tree *tree);

/* Where an archive lies while it is unpacked: descriptor for reading, the caller's (close). Errno. */
int tree_spool_open(const struct tree *tree, uint64_t idx_file, struct why *why);

/* Everything to the disk, the link swapped, the stamp written, and what is older than the version before removed. For
 * when all nodes are ready. `stamp` holds what the caller knows (index, format, n_nodes); the rest is filled in. */
int tree_publish(struct tree *tree, struct stamp *stamp, struct why *why);
