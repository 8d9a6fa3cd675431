/* proto/jpeg/codes.h: Huffman codes of a JPEG as flat tables, that a thread of any processor decodes with.
 *
 * A symbol takes one look at the next bits if its code is short, as nearly all are, and a few comparisons else. The
 * tables are plain data without pointers: they are copied to where the threads are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DLP_JPEG_CODE_MAX   16u /* bits of the longest code */
#define DLP_JPEG_LOOK_BITS  9u  /* bits of a code that one look finds */
#define DLP_JPEG_LOOKS      (1u << DLP_JPEG_LOOK_BITS)
#define DLP_JPEG_LONG_CODES (DLP_JPEG_CODE_MAX - DLP_JPEG_LOOK_BITS)

/* Sizes, in bits, of the values that follow codes in a baseline file. */
#define DLP_JPEG_DC_SIZE_MAX 11u
#define DLP_JPEG_AC_SIZE_MAX 10u

struct dlp_jpeg_codes {
        /* By the next DLP_JPEG_LOOK_BITS bits: bits of the code << 8 | its symbol; 0: the code is longer, or none. */
        uint16_t looks[DLP_JPEG_LOOKS];
        /* Of codes of DLP_JPEG_LOOK_BITS + 1 + i bits: such a code is there if the next 16 bits are less than limits[i]
         * (and not less than the limit before); its symbol is symbols[its bits + firsts[i]], modulo 65,536. */
        uint32_t limits[DLP_JPEG_LONG_CODES];
        uint16_t firsts[DLP_JPEG_LONG_CODES];
        uint8_t symbols[256];
};

/* Reads a definition as it stands in a file: how many codes of each length, then the symbols, n_bytes in all. Returns
 * whether it is a code of a baseline file: no more codes than there are, no symbol whose value would be too long. */
bool dlp_jpeg_codes_read(const uint8_t *definition, size_t n_bytes, bool is_ac, struct dlp_jpeg_codes *ret_codes);
