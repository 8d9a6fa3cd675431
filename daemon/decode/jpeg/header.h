/* decode/jpeg/header.h: the headers of a JPEG that our own decoder handles. Private to this floor.
 *
 * Only the plain cases are accepted. Files that are unusual, damaged, or would make libjpeg-turbo print a warning are
 * left to libjpeg-turbo. */
#pragma once

#include "daemon/decode/jpeg/huffman.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Not for our own decoder: what libjpeg-turbo makes of the file counts. */
#define BASELINE_HANDS_OVER 1

#define JPEG_COMPONENTS   3u
#define JPEG_BLOCK        8u  /* samples along a side */
#define JPEG_COEFFICIENTS 64u /* of a block */

/* Divisors as in the file, in zigzag order. */
struct jpeg_divisors {
        const uint8_t *bytes; /* points into the file; NULL: missing */
        bool is_wide;         /* 16 bits, big-endian, instead of 8 */
};

struct jpeg_header {
        uint32_t width, height;
        uint32_t n_components;     /* 1 grey, 3 YCbCr */
        uint32_t h, v;             /* luma samples for one of chroma, along either axis: 1 or 2 */
        uint32_t restart_interval; /* MCUs; 0: no restarts */
        struct jpeg_divisors divisors[JPEG_COMPONENTS];
        struct huffman_definition dc[JPEG_COMPONENTS], ac[JPEG_COMPONENTS];
        const uint8_t *scan, *end; /* the rest of the file after the headers; it contains an end-of-image marker */
};

/* The header points into `bytes`. 0 or BASELINE_HANDS_OVER. */
int jpeg_header_read(const uint8_t *bytes, size_t n_bytes, struct jpeg_header *ret_header);
