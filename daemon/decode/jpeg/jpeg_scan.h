/* decode/jpeg/jpeg_scan.h: the entropy-coded bytes of a JPEG, as they are read: a zero is stuffed after each 0xff of the
 * file, and markers cut it into segments where decoding starts anew. Private to this floor.
 *
 * A segment is copied piece by piece without the stuffing, a little ahead of the reader. So the bit buffer need not
 * check the bytes that it loads, the copy is still in the first-level cache when it is read, and bytes that are not
 * read are not copied. */
#pragma once

#include "daemon/decode/jpeg/jpeg_bits.h"

#include <stdbool.h>
#include <stddef.h>

#define SCAN_BLOCKS_MAX 6u /* blocks of an MCU: the limit that baseline_open() checks */

/* Bytes of an MCU: each block has one DC code of 16 bits with a value of 11 and 63 AC codes of 16 with values of 15.
 * Rounded up, plus what a refill reads ahead. */
#define SCAN_MCU_MAX (SCAN_BLOCKS_MAX * (27u + 63u * 31u) / 8u + 51u)

#define SCAN_PIECE 8192u /* bytes */

struct scan {
        const uint8_t *next, *end; /* the part of the file that is not copied yet */
        const uint8_t *limit;      /* an MCU may be read from here, or before, without a check */
        uint8_t *filled;           /* end of the segment's bytes in `bytes` */
        bool is_segment_end;       /* the rest of the segment is there */
        uint8_t marker;            /* the marker that ended the segment; 0: none that we understand */
        uint8_t bytes[SCAN_PIECE + 2 * SCAN_MCU_MAX];
};

/* From the file's bytes [begin, end). */
void scan_start(struct scan *scan, struct jpeg_bits *bits, const uint8_t *begin, const uint8_t *end);

/* Makes sure that an MCU can be read; to be called if bits->at > scan->limit. 0, or BASELINE_HANDS_OVER: more was read
 * than the segment has. */
int scan_more(struct scan *scan, struct jpeg_bits *bits);

/* Checks the end of a segment: only padding bits are left, nothing is missing, and `marker` follows. 0 or
 * BASELINE_HANDS_OVER. */
int scan_end_segment(struct scan *scan, struct jpeg_bits *bits, uint8_t marker);

/* Continues after the marker. */
void scan_next_segment(struct scan *scan, struct jpeg_bits *bits);
