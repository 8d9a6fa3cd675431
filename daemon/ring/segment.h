/* ring/segment.h: a piece of shared memory: a memfd, mapped here, its pages got in the best way that this node allows.
 *
 * Huge pages, locking and NUMA binding are wishes. Each is tried, the next best thing is taken, and the report says in
 * words what was obtained, because a user who asked for pinned memory must be able to see that it is not.
 *
 * Pages reserved for hugetlb are never used. A client that may write to the memory may also punch holes into it, which
 * no seal forbids. Of ordinary pages the next write gets new ones; hugetlb pages can be gone by then, to another
 * process, and the write would end the daemon with SIGBUS. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"

enum segment_wish {
        SEGMENT_NO,  /* do not try */
        SEGMENT_TRY, /* the next best thing if it is not available */
};

struct segment_options {
        const char *name; /* shown in /proc/PID/maps of both sides */
        uint64_t n_bytes;
        enum segment_wish huge_pages; /* transparent, else 4 KiB */
        enum segment_wish lock;
        int numa_node;          /* bind there before first touch; -1 = leave it to the kernel */
        bool sparse;            /* pages come when they are written: neither touched nor locked */
        uint64_t n_bytes_first; /* touch only these now, the rest with segment_touch_rest(); 0 = all */
        uint32_t n_threads;     /* to touch the pages with */
};

struct segment {
        int fd;
        int lent_fd; /* the same memory, opened anew for the client: ring/lent.h; -1 once it is sent */
        uint8_t *base;
        uint64_t n_bytes;   /* of the memfd */
        uint64_t n_touched; /* bytes from the beginning whose pages are there; constant after segment_init() */
        char obtained[256]; /* "2 MiB pages (transparent, 38 of 38 MiB), locked, node 0" */
};

/* Makes, maps and touches the memory. Blocks for the touching: about 0.4 s a GiB with 4 KiB pages and one thread.
 * -ENOMEM with a sentence if the pages are not available (then nothing is kept). */
int segment_init(struct segment *segment, const struct segment_options *options, struct why *why);

/* Touches what segment_init() left. Blocks as segment_init() would have; may run while others already write to the
 * memory. If pages are not available, the thread that writes to them later fails. */
void segment_touch_rest(struct segment *segment, uint32_t n_threads);

/* Unmaps, and returns the descriptor that is left: the caller's. */
int segment_unmap(struct segment *segment);

/* Unmaps and closes. Takes a zeroed or half-made segment (fd 0 counts as none only with base NULL). */
void segment_fini(struct segment *segment);

/* Forbids resizing, further seals and, with `read_only`, every later writable mapping: the client's. Ours stays. */
int segment_seal(struct segment *segment, bool read_only, struct why *why);
