/* data/files/cuts.h: files that are cut into pieces, which several threads look at while the caller takes them in order.
 *
 * A piece is a range of a file's bytes, or just a number; what a thread does with it, its work says. What it found
 * stays in a slot until the caller has taken the piece: he sees the pieces in their order, and never which thread was
 * faster. A record of a text file may begin anywhere, so the records of a piece are those that begin in it, and a
 * thread reads on if the last one ends after it. Where the first record of a piece begins may depend on all bytes
 * before it (an open quote). For this there is a state at each cut: a thread says early how the state after its piece
 * follows from the one before it (cuts_state()).
 *
 * Files are opened ahead, too, and pieces of several of them looked at together. When nobody has begun the piece that
 * the caller waits for, his thread looks as the others do; so a single thread is enough, and others are only started
 * when there is work for them, unless there is a limit on threads. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "proto/base/why.h"

#define CUTS_THREADS 16u                 /* the caller's among them */
#define CUTS_SLOTS   (2u * CUTS_THREADS) /* pieces that are looked at, or were and are not taken yet */
#define CUTS_FILES   16u                 /* that are open */
#define CUTS_STATES  4u

/* Positive outcome of cuts_next(): the file has no further piece, or there is none. */
#define CUTS_END 1

/* Sizes of the work that is done at once. Tests change them. */
struct cuts_limits {
        uint32_t n_threads;  /* 1 to CUTS_THREADS; 0: as many as there are CPUs */
        uint64_t cut_bytes;  /* of a piece of text */
        uint64_t long_bytes; /* a record of that many bytes is left to the caller: no piece takes much more memory */
        bool is_patient;     /* the caller leaves all pieces to other threads, if there are any */
};

extern struct cuts_limits CUTS_LIMITS;

struct cut {
        size_t idx_file;
        int fd;              /* of the file; not to be closed */
        uint64_t begin, end; /* bytes of the file */
        uint64_t n_file;     /* bytes of the file */
        bool is_first;       /* of its file */
        bool is_new;         /* nobody has looked at it: the caller does what there is to do (cuts_work, is_callers) */
        uint32_t idx_slot;   /* below CUTS_SLOTS: where what is found is kept */
        uint64_t number;     /* counted over all files */
};

struct cuts;

struct cuts_files {
        size_t n;
        /* Opens file idx, which is regular, in any thread, several of them at once. Returns a descriptor, which is
         * closed when the caller goes to the next file, and its status; or an errno with `why`. `settled_ns`: of this
         * thread, as in index_stamp.h. */
        int (*open)(void *userdata, size_t idx, int64_t *settled_ns, struct stat *ret_status, struct why *why);
        void *userdata;
};

struct cuts_work {
        struct cuts_files files;
        uint64_t n_pieces; /* in place of files: pieces that have a number alone */

        /* Looks at a piece, in any thread, and several at once, but one for each slot. What is wrong with it is kept in
         * the slot like all else. */
        void (*look)(void *userdata, struct cuts *cuts, const struct cut *cut);
        void *userdata;

        uint64_t cut_bytes;  /* 0: as CUTS_LIMITS says */
        uint32_t n_slots;    /* 0: as many as are useful */
        uint32_t n_threads;  /* at most, the caller's among them; 0: as many as there are CPUs */
        uint32_t n_alone;    /* pieces that the caller's thread looks at before another thread is started */
        uint32_t n_together; /* slots or files that are free before idle threads are woken: waking costs as much as
                              * reading a little. 0: 1 */
        bool is_reading;     /* looking is one read: more threads than CPUs are of use while reads wait for a disk */
        bool is_callers;     /* a piece that nobody has begun is the caller's own, and is not looked at */
};

/* How many threads there would be, the caller's among them. Reads a few small files of the kernel's. */
uint32_t cuts_threads(void);

/* Returns 0 or -ENOMEM. `work` is copied. Pieces without files are begun at once. */
int cuts_new(const struct cuts_work *work, struct cuts **ret_cuts);

/* Takes NULL, and waits for what was begun. */
void cuts_free(struct cuts *cuts);

/* The file idx: the first one, or the next one when all pieces of the one before were taken (asserted). Returns 0, its
 * descriptor, which stays open until the next call, and the status that it had when it was opened; or what open()
 * returned. Blocks for the file system. */
int cuts_file(struct cuts *cuts, size_t idx, int *ret_fd, struct stat *ret_status, struct why *why);

/* Cutting begins at this byte of the first file; whatever comes before it is the caller's. Nothing is looked at, and no
 * second file opened, before this call, which is to be made once. */
void cuts_start(struct cuts *cuts, uint64_t first);

/* Waits until the next piece of this file was looked at. Returns 0 or CUTS_END. Blocks as look() does. */
int cuts_next(struct cuts *cuts, struct cut *ret_cut);

/* The same for a piece of this file by its number, for which there is a slot. */
void cuts_know(struct cuts *cuts, uint64_t number);

/* Pieces before this one, which were looked at, were taken: their slots are free. */
void cuts_take(struct cuts *cuts, uint64_t number);

/* For look(), at most once a piece. `after` says which state the piece ends in, for each state that it may begin in:
 * from `state` it goes to after[state]. A file begins in state 0. Waits for the pieces before this one. Returns the
 * state in which this piece begins, or CUTS_STATES if a piece before it did not call this. */
uint8_t cuts_state(struct cuts *cuts, const struct cut *cut, const uint8_t after[CUTS_STATES]);

/* For look(): nobody wants it any more once this is true. */
const atomic_bool *cuts_is_over(const struct cuts *cuts);
