/* decode/jpeg/libjpeg.h: JPEG through libjpeg-turbo, with the library's defaults, which are Pillow's. Private to this
 * floor.
 *
 * It reads every layout that the library knows, and its result for damaged files is the one that counts. For a box, it
 * computes only the needed columns and rows and stops after the last row; the pixels equal those of a full decode.
 *
 * The library's structures are made by libjpeg_open() and are gone after the picture was read. */
#pragma once

#include "daemon/base/rows.h"
#include "daemon/decode/picture_format.h"

struct libjpeg;

int libjpeg_new(const struct decode_limits *limits, struct libjpeg **ret_libjpeg);

/* Takes NULL. */
void libjpeg_free(struct libjpeg *libjpeg);

/* Reads the header and checks the limits. `bytes` must stay valid until the picture was read or another is opened.
 * Errors as in decode.h. */
int libjpeg_open(struct libjpeg *libjpeg, const uint8_t *bytes, size_t n_bytes, uint32_t *ret_width,
                 uint32_t *ret_height, struct why *why);

/* Of the open picture: all pixels have equal colours. */
bool libjpeg_is_grey(const struct libjpeg *libjpeg);

/* The most memory that reading any box of the open picture may take, the library's memory and `work` together. */
uint64_t libjpeg_need(const struct libjpeg *libjpeg);

/* Decodes the pixels of `box`, which lies within the picture. Once for each picture. */
int libjpeg_read(struct libjpeg *libjpeg, const struct box *box, const struct row_sink *sink, struct scratch *work,
                 struct why *why);
