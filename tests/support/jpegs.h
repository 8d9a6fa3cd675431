/* tests/support/jpegs.h: JPEGs of all kinds, made by libjpeg-turbo's compressor, and what its decoder makes of a file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A generator of numbers that are the same in every run; the state is not 0. */
uint32_t jpegs_random(uint64_t *state, uint32_t n);

enum jpegs_content {
        JPEGS_NOISE,
        JPEGS_SMOOTH,
        JPEGS_PHOTO,
        N_JPEGS_CONTENTS
};

enum jpegs_codes {
        JPEGS_STANDARD,  /* the standard's Huffman tables */
        JPEGS_OPTIMISED, /* the picture's own */
        JPEGS_STRANGE,   /* valid tables that nobody would choose: very short and very long codes */
};

struct jpegs_spec {
        uint32_t width, height;
        int quality;      /* 1 to 100 */
        int h, v;         /* luma's sampling factors, chroma's are 1; 0: grey */
        uint32_t restart; /* MCUs between restarts; 0: none */
        enum jpegs_content content;
        enum jpegs_codes codes;
        uint64_t seed;
};

/* The file, in memory that ends with its last byte; the caller frees it. */
uint8_t *jpegs_make(const struct jpegs_spec *spec, size_t *ret_n_bytes);

/* As in the spec, with what else libjpeg can write. */
enum jpegs_kind {
        JPEGS_PROGRESSIVE,
        JPEGS_ARITHMETIC,
        JPEGS_CMYK,
        JPEGS_RGB,
        JPEGS_CHROMA_FACTORS, /* chroma with factors of its own */
        JPEGS_LUMA_411,
        JPEGS_SCANS, /* a scan for each component */
        N_JPEGS_KINDS,
};

uint8_t *jpegs_make_other(const struct jpegs_spec *spec, enum jpegs_kind kind, size_t *ret_n_bytes);

/* libjpeg's word about a file. */
struct jpegs_verdict {
        uint32_t width, height; /* 0: it did not get that far */
        uint32_t n_rows;        /* that it gave before it failed; `height` if it did not */
        bool has_failed;
        long n_warnings;
        uint8_t *rgb; /* width * height pixels */
};

/* Files of more than max_pixels are not decoded: as if they had failed. The caller frees verdict.rgb. */
struct jpegs_verdict jpegs_decode(const uint8_t *bytes, size_t n_bytes, uint64_t max_pixels);
