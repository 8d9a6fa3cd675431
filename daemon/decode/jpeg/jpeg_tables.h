/* decode/jpeg/jpeg_tables.h: the Huffman tables of a picture, shared between decoders. Private to this floor.
 *
 * Most files carry the standard's tables, or those of one camera. A decoder holds the tables of its last picture and
 * only compares definitions. It looks for other tables in a pool of the process, and builds only those that are not in
 * the pool. The pool is bounded; a table lives as long as at least one decoder holds it. */
#pragma once

#include "daemon/decode/jpeg/header.h"

struct shared_table;

/* The tables of one decoder; zeroed at first. */
struct jpeg_tables {
        struct shared_table *dc[JPEG_COMPONENTS], *ac[JPEG_COMPONENTS];
        bool is_known[JPEG_COMPONENTS]; /* AC: an earlier picture had it */
};

/* Holds the tables that the header asks for, and releases others. 0; HUFFMAN_INVALID: one of them is not a valid table;
 * -ENOMEM. */
int tables_hold(struct jpeg_tables *tables, const struct jpeg_header *header);

void tables_fini(struct jpeg_tables *tables);

const struct huffman_dc *tables_dc(const struct jpeg_tables *tables, uint32_t component);
const struct huffman_ac *tables_ac(const struct jpeg_tables *tables, uint32_t component);

/* Steps for skipping coefficients (huffman.h). A table that is used for the first time returns its normal steps, since
 * it may belong to one picture only. */
const uint16_t *tables_skips(const struct jpeg_tables *tables, uint32_t component);
