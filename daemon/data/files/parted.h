/* data/files/parted.h: pieces of a dataset, numbered from 0, of which several threads look at some ahead (data/files/cuts.h), while the
 * caller takes all of them in order.
 *
 * The result, errors and messages included, is the same as with one thread. Therefore look() changes nothing that
 * others see: what it finds is kept until the piece is taken. And it refuses nothing: after any error it returns NULL,
 * and the caller reads this piece itself when its turn comes. A single thread never looks ahead. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/files/cuts.h"

struct parted {
        uint64_t n;
        /* Looks at a piece ahead, in any thread, and at several of them at once. Ends soon once *is_over is true.
         * Returns what it found; NULL: nothing that is of use, as after any error. Without this function there is
         * only the caller's thread. */
        void *(*look)(void *userdata, uint64_t piece, const atomic_bool *is_over);
        /* Takes the next piece, in the caller's thread: what was found of it, or NULL. Returns 0, or an errno, which
         * ends the run. */
        int (*take)(void *userdata, uint64_t piece, const void *found);
        void (*free)(void *found);
        void *userdata;
};

/* The number of pieces that n_files files are best cut into: few, but some for each thread. A multiple of n_files. */
uint64_t parted_pieces(uint64_t n_files);

/* Takes all pieces. Returns 0; what take() returned; or -ENOMEM. Blocks as look() and take() do. At most twice as many
 * pieces as threads are looked at, or were and are not taken yet. */
int parted_run(const struct parted *pieces);
