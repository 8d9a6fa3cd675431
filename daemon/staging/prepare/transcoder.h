/* staging/prepare/transcoder.h: a JPEG -> the same picture in rows that can be decoded side by side. Private to this
 * floor.
 *
 * Baseline sequential, one scan, a restart marker after each row of MCUs, Huffman tables of the picture's own (two of
 * each kind at most), and at its head the offsets of the rows (proto/jpeg/row_index.h). The coefficients are those of
 * the source, so every decoder gives the same pixels of both, bit for bit; what was written is read back, and a digest
 * of its coefficients and their steps of quantisation compared with the source's; and it is read as those read it who
 * decode it in rows (proto/jpeg/jpeg_rows.h).
 *
 * Of the metadata, what says how a picture is to be shown stays: EXIF (orientation), ICC profile, Adobe's marker. Other
 * segments go: thumbnails of other formats, comments, offsets that would no longer be true.
 *
 * It takes grey and YCbCr of 8 bits, 4:4:4, 4:2:2, 4:2:0 and 4:4:0, coded with Huffman's codes, sequential or
 * progressive. A source of which libjpeg-turbo has a warning is not taken: what a decoder makes of damage depends on
 * where the damage lies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/staging/prepare/prepare_block.h"
#include "proto/base/why.h"

#define TRANSCODER_CANNOT 1 /* positive outcome: not such a file, or a damaged one; `why` says what */

/* Of one thread at a time. */
struct transcoder;

int transcoder_new(struct transcoder **ret_transcoder); /* -ENOMEM */
void transcoder_free(struct transcoder *transcoder);    /* NULL is fine */

/* Reads the headers; forgets a picture that was not made. `bytes` must stay valid until it is made or forgotten.
 * *ret_need: memory that it may take, the new file included. 0, TRANSCODER_CANNOT, -ENOMEM. */
int transcoder_open(struct transcoder *transcoder, const uint8_t *bytes, size_t n_bytes, uint64_t *ret_need,
                    struct why *why);

/* Makes the file, which is the caller's (block_free). Once for each open picture. `is_cancelled` is asked after every
 * row of MCUs. 0, TRANSCODER_CANNOT, -ENOMEM, -ECANCELED. */
int transcoder_make(struct transcoder *transcoder, bool (*is_cancelled)(void *userdata), void *userdata,
                    struct block *ret_file, size_t *ret_n_bytes, struct why *why);

/* Forgets the open picture and frees what it took. */
void transcoder_forget(struct transcoder *transcoder);
