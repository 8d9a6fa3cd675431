/* decode/jpeg/tables.h: the Huffman tables of a picture, shared between decoders. Private to this floor.
 *
 * Most files carry the standard's tables, or those of one camera. A decoder holds the ones of its last picture and only
 * compares definitions. What it does not hold it looks for in a pool of the process, and only what is not there either
 * is built. The pool is bounded; a table lives as long as somebody holds it. */
#pragma once

#include "daemon/decode/jpeg/header.h"

struct shared_table;

/* Of one decoder; zeroed at first. */
struct tables {
        struct shared_table *dc[JPEG_COMPONENTS], *ac[JPEG_COMPONENTS];
        bool is_known[JPEG_COMPONENTS]; /* AC: there was a picture with it before */
};

/* Holds the tables that the header asks for, and lets go of others. 0; HUFFMAN_INVALID: one of them is none; -ENOMEM.
 */
int tables_hold(struct tables *tables, const struct jpeg_header *header);

void tables_fini(struct tables *tables);

const struct huffman_dc *tables_dc(const struct tables *tables, uint32_t component);
const struct huffman_ac *tables_ac(const struct tables *tables, uint32_t component);

/* Steps for passing over coefficients (huffman.h); for a table that comes for the first time the ones it has, since it
 * may be one picture's own. */
const uint16_t *tables_skips(const struct tables *tables, uint32_t component);
