/* proto/jpeg/row_index.h: where the rows of MCUs of a JPEG begin, said by the file itself.
 *
 * A JPEG with a restart marker after each row of MCUs is as many independent pieces as it has rows, which a GPU decodes
 * side by side. So that nobody has to search for the markers, a segment APP15 at the head of the file says where they
 * are. All other programs skip it: the file is an ordinary baseline JPEG.
 *
 *   byte  0  "dlprows" and a NUL
 *         8  u32: the version of this layout, 1
 *        12  u32: n_rows, rows of MCUs
 *        16  u32 offsets[n_rows + 1], in bytes after the header of the scan: the first byte of each row's codes, and
 *            the end of the file's picture, after its EOI
 *
 * All numbers are little-endian. Row i lies from offsets[i] to offsets[i + 1] - 2; the two bytes after it are its
 * marker, RST(i % 8) or EOI. Counting from the scan, offsets stay true when a program removes or adds segments before
 * it. A segment holds 16,379 offsets and a JPEG has 8,188 rows of MCUs at most, so one is always enough. */
#pragma once

#include <stdint.h>

#define DLP_JPEG_ROWS_MAGIC   "dlprows" /* with its NUL */
#define DLP_JPEG_ROWS_VERSION 1u
#define DLP_JPEG_ROWS_MAX     8188u /* 65,500 pixels: libjpeg's limit, in rows of 8 */

#define DLP_JPEG_ROWS_AT_VERSION 8u
#define DLP_JPEG_ROWS_AT_COUNT   12u
#define DLP_JPEG_ROWS_AT_OFFSETS 16u

/* Bytes of the segment's content, without its marker and length. */
#define DLP_JPEG_ROWS_BYTES(n_rows) (DLP_JPEG_ROWS_AT_OFFSETS + 4u * ((uint32_t)(n_rows) + 1u))
