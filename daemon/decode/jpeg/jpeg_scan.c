#include "daemon/decode/jpeg/jpeg_scan.h"

#include "daemon/decode/jpeg/header.h"

#include <assert.h>
#include <string.h>

#define STRIDE 16u /* bytes that are copied at a time */

typedef uint8_t stride_bytes __attribute__((vector_size(STRIDE)));

/* How many of the next STRIDE bytes come before the first 0xff. */
static unsigned count_plain(const uint8_t *bytes) {
        stride_bytes stride;
        uint64_t marks[2];

        memcpy(&stride, bytes, sizeof(stride));
        stride = (stride_bytes)(stride == 0xff); /* each byte 0xff or 0 */
        memcpy(marks, &stride, sizeof(marks));
        if (marks[0] != 0)
                return (unsigned)__builtin_ctzll(le64toh(marks[0])) / 8;
        return marks[1] != 0 ? 8 + (unsigned)__builtin_ctzll(le64toh(marks[1])) / 8 : STRIDE;
}

/* Copies up to the next 0xff, or until `room` is reached; may pass `room` by less than STRIDE. Returns the end of the
 * copy. */
static uint8_t *copy_plain(struct scan *scan, uint8_t *to, const uint8_t *room) {
        const uint8_t *from = scan->next;
        unsigned n = STRIDE;

        while (to < room && n == STRIDE && scan->end - from >= (ptrdiff_t)STRIDE) {
                n = count_plain(from);
                memcpy(to, from, STRIDE);
                from += n;
                to += n;
        }
        while (to < room && from < scan->end && *from != 0xff)
                *to++ = *from++;
        scan->next = from;
        return to;
}

/* At an 0xff: is it stuffed? False: a marker, or the end of the file. */
static bool is_stuffed(const struct scan *scan) {
        return scan->end - scan->next >= 2 && scan->next[1] == 0;
}

static void end_segment(struct scan *scan) {
        scan->is_segment_end = true;
        scan->marker = scan->end - scan->next >= 2 ? scan->next[1] : 0;
        /* When a segment has been read to its last bit, a refill has gone up to seven bytes further. */
        scan->limit = scan->filled + 7;
}

/* Appends more bytes at `filled`. */
static void jpeg_scan_fill(struct scan *scan) {
        uint8_t *to = scan->filled;
        const uint8_t *room = scan->bytes + SCAN_PIECE + SCAN_MCU_MAX - STRIDE;

        while (to < room) {
                to = copy_plain(scan, to, room);
                if (to >= room)
                        break;
                if (scan->next == scan->end || !is_stuffed(scan)) {
                        scan->filled = to;
                        end_segment(scan);
                        return;
                }
                *to++ = 0xff;
                scan->next += 2;
        }
        scan->filled = to;
        scan->limit = to - SCAN_MCU_MAX;
}

static void start_segment(struct scan *scan, struct jpeg_bits *bits) {
        scan->is_segment_end = false;
        scan->filled = scan->bytes;
        *bits = (struct jpeg_bits){ .at = scan->bytes };
        jpeg_scan_fill(scan);
}

void scan_start(struct scan *scan, struct jpeg_bits *bits, const uint8_t *begin, const uint8_t *end) {
        scan->next = begin;
        scan->end = end;
        start_segment(scan, bits);
}

int scan_more(struct scan *scan, struct jpeg_bits *bits) {
        size_t n_left;

        if (scan->is_segment_end)
                return bits->at > scan->limit ? BASELINE_HANDS_OVER : 0;

        assert(bits->at <= scan->filled);
        n_left = (size_t)(scan->filled - bits->at);
        memmove(scan->bytes, bits->at, n_left);
        scan->filled = scan->bytes + n_left;
        bits->at = scan->bytes;
        jpeg_scan_fill(scan);
        return 0;
}

int scan_end_segment(struct scan *scan, struct jpeg_bits *bits, uint8_t marker) {
        int64_t n_left;

        if (bits->at > scan->limit && scan_more(scan, bits) != 0)
                return BASELINE_HANDS_OVER;
        if (!scan->is_segment_end)
                return BASELINE_HANDS_OVER; /* more than an MCU is left */
        n_left = bits_left(bits, scan->filled);
        return n_left < 0 || n_left >= 8 || scan->marker != marker ? BASELINE_HANDS_OVER : 0;
}

void scan_next_segment(struct scan *scan, struct jpeg_bits *bits) {
        scan->next += 2;
        start_segment(scan, bits);
}
