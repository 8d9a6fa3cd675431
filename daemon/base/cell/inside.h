/* base/cell/inside.h: a cell, from the inside: how it begins, and its loop.
 *
 * The program's main() calls cell_inside() before anything else, with its kinds. A new kind is a row: what it makes of
 * its setup while files can still be opened, and what it does for an order. One thread; nothing is locked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/cell/cell_messages.h"

struct cell_kind {
        const char *name;

        /* Before it is confined: n_bytes of setup, as cell_start() was given them. Sets how much memory of its own it
         * may take afterwards; 0: any. Errors are the cell's, with a sentence: cell_start() gives that to its caller.
         */
        int (*prepare)(const void *setup, size_t n_bytes, uint64_t *ret_data_bytes, struct why *why);

        /* An order: a packet of n_bytes. Writes an answer of at most CELL_MESSAGE_MAX bytes, without its head, and
         * returns its length. Sets the answer's result. */
        size_t (*order)(const void *order, size_t n_bytes, void *answer, int *ret_result);

        /* A memory is about to be unmapped: what was made of it goes first. NULL: nothing was. */
        void (*forget)(uint64_t memory);
};

/* Is this process to be a cell? Then it is one, and this does not return. Kinds end with a NULL name. */
void cell_inside(int argc, char **argv, const struct cell_kind *kinds);

/* The bytes of a place, of which the daemon has sent the memory; NULL: there is no such place, or it may only be read.
 * Alignment is the daemon's business. */
const uint8_t *cell_inside_bytes(const struct cell_place *place);
uint8_t *cell_inside_room(const struct cell_place *place);
