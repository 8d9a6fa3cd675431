/* staging/prepare/prepare_row_index.h: fills in where the rows of MCUs of a file begin (proto/jpeg/row_index.h). Private to
 * this floor. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* `file` is a whole JPEG of one scan, with a restart marker after each of its n_rows rows of MCUs. At `segment_at` lies
 * the marker of a segment with DLP_JPEG_ROWS_BYTES(n_rows) of content, whose content is written. 0; -EBADMSG: the
 * markers are other ones. */
int row_index_fill(uint8_t *file, size_t n_bytes, size_t segment_at, uint32_t n_rows);
