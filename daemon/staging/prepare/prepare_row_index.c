#include "daemon/staging/prepare/prepare_row_index.h"

#include <errno.h>
#include <string.h>

#include "proto/jpeg/row_index.h"

enum marker {
        RST0 = 0xd0,
        EOI = 0xd9,
        SOS = 0xda,
};

#define N_RESTARTS     8u /* numbers of restart markers, in turn */
#define SEGMENT_HEADER 4u /* marker and length, which counts itself */

static void put_le32(uint8_t *bytes, uint32_t number) {
        for (unsigned i = 0; i < 4; i++)
                bytes[i] = (uint8_t)(number >> 8 * i);
}

/* The first byte after the header of the scan, looked for from a segment on; 0: there is none. */
static size_t find_scan(const uint8_t *file, size_t n_bytes, size_t at) {
        while (at < n_bytes && n_bytes - at >= SEGMENT_HEADER && file[at] == 0xff) {
                unsigned marker = file[at + 1];

                at += 2 + ((size_t)file[at + 2] << 8 | file[at + 3]);
                if (marker == SOS)
                        return at < n_bytes ? at : 0;
        }
        return 0;
}

int row_index_fill(uint8_t *file, size_t n_bytes, size_t segment_at, uint32_t n_rows) {
        uint8_t *content = file + segment_at + SEGMENT_HEADER, *offsets = content + DLP_JPEG_ROWS_AT_OFFSETS;
        size_t scan = find_scan(file, n_bytes, segment_at), at = scan;

        if (scan == 0)
                return -EBADMSG;
        memcpy(content, DLP_JPEG_ROWS_MAGIC, sizeof(DLP_JPEG_ROWS_MAGIC));
        put_le32(content + DLP_JPEG_ROWS_AT_VERSION, DLP_JPEG_ROWS_VERSION);
        put_le32(content + DLP_JPEG_ROWS_AT_COUNT, n_rows);
        put_le32(offsets, 0);
        for (uint32_t row = 0; row < n_rows;) {
                const uint8_t *found = memchr(file + at, 0xff, n_bytes - at);

                if (!found || found + 1 == file + n_bytes)
                        return -EBADMSG;
                at = (size_t)(found - file) + 2;
                if (found[1] == 0) /* a byte of the codes */
                        continue;
                if (found[1] != (row + 1 == n_rows ? EOI : RST0 + row % N_RESTARTS))
                        return -EBADMSG;
                row++;
                put_le32(offsets + 4 * row, (uint32_t)(at - scan));
        }
        return at == n_bytes ? 0 : -EBADMSG;
}
