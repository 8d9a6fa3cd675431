/* decode/jpeg/scan.h: the entropy-coded bytes of a JPEG, as they are read: a zero is stuffed after each 0xff of the
 * file, and markers cut it into segments where decoding starts anew. Private to this floor.
 *
 * A piece of a segment at a time is copied without the stuffing, a little ahead of what is read. So the bit buffer
 * need not look at what it loads, the copy is still in the first-level cache when it is read, and what is not read is
 * not copied. */
#pragma once

#include "daemon/decode/jpeg/bits.h"

#include <stdbool.h>
#include <stddef.h>

#define SCAN_BLOCKS_MAX 6u /* of an MCU: what baseline_open() lets through */

/* Of an MCU: each block has one DC code of 16 bits with a value of 11 and 63 AC codes of 16 with values of 15. Rounded
 * up, with what a refill reads ahead. */
#define SCAN_MCU_MAX (SCAN_BLOCKS_MAX * (27u + 63u * 31u) / 8u + 51u)

#define SCAN_PIECE 8192u /* bytes */

struct scan {
        const uint8_t *next, *end; /* of the file, what is not copied yet */
        const uint8_t *limit;      /* an MCU may be read from here, or before, without asking */
        uint8_t *filled;           /* what lies in `bytes` of the segment ends here */
        bool is_segment_end;       /* and this is all of it */
        uint8_t marker;            /* what ended the segment; 0: nothing that we understand */
        uint8_t bytes[SCAN_PIECE + 2 * SCAN_MCU_MAX];
};

/* From the file's bytes [begin, end). */
void scan_start(struct scan *scan, struct bits *bits, const uint8_t *begin, const uint8_t *end);

/* Sees to it that an MCU can be read; to be called where bits->at > scan->limit. 0, or BASELINE_HANDS_OVER: more was
 * read than the segment has. */
int scan_more(struct scan *scan, struct bits *bits);

/* The segment is read: is nothing left of it but padding bits, nothing missing, and `marker` after it? 0 or
 * BASELINE_HANDS_OVER. */
int scan_end_segment(struct scan *scan, struct bits *bits, uint8_t marker);

/* Continues after the marker. */
void scan_next_segment(struct scan *scan, struct bits *bits);
