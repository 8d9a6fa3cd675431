/* decode/tiff/kind.h: what the samples of a TIFF mean, as in Pillow 9.4. Private to decode/tiff/.
 *
 * TIFF has more combinations of its tags than any reader handles. A combination that Pillow refuses, or that it is
 * known to read wrongly, is refused here, with its numbers in the error. */
#pragma once

#include "daemon/decode/decode.h"
#include "daemon/decode/samples.h"
#include "proto/base/why.h"

#include <stdbool.h>
#include <stdint.h>

enum tiff_samples {
        TIFF_INDICES,      /* a palette, or grey as a palette; up to 8 bits */
        TIFF_GREY_16,      /* clipped at 255 */
        TIFF_GREY_16S,     /* signed; clipped at 0 and 255 */
        TIFF_GREY_32S,     /* as above */
        TIFF_GREY_FLOAT,   /* as above, and truncated to whole numbers */
        TIFF_COLORS,       /* red, green, blue, and more samples that are ignored */
        TIFF_COLORS_ALPHA, /* the same, multiplied with the fourth sample */
        TIFF_INKS,         /* cyan, magenta, yellow, black */
        TIFF_NUMBERS,      /* as they are stored: not for tiff_convert() */
};

/* The tags that determine it, with libtiff's numbers. */
struct tiff_tags {
        uint16_t photometric, bits, sample_format, n_samples, planar, fill_order, compression;
        uint16_t n_extras; /* samples in addition to the colours */
        uint16_t extras[4];
        bool is_big_endian;
};

struct tiff_kind {
        enum tiff_samples samples;
        unsigned bits;      /* of a sample */
        unsigned n_samples; /* of a pixel */
        bool has_palette;   /* the file's own, not grey */
        int alpha;          /* which sample is alpha; -1: none */
        enum decode_as as;  /* what tiff_convert() makes of the samples */
        struct palette palette;
};

/* Returns 0; -ENOTSUP with the numbers if this combination is not handled. For photometric "palette", the caller sets
 * the palette. */
int tiff_kind_of(const struct tiff_tags *tags, struct tiff_kind *ret_kind, struct why *why);

/* For samples that are delivered as they are stored, whatever they mean: any number of bands of whole bytes. */
int tiff_kind_of_numbers(const struct tiff_tags *tags, struct tiff_kind *ret_kind, enum dlp_dtype *ret_dtype,
                         struct why *why);

/* Says what tiff_convert() makes of the samples: see decoder_as(), whose results it has. */
int tiff_kind_as(struct tiff_kind *kind, enum decode_as as, struct why *why);

/* Converts pixels x ... x + width - 1 of a row whose samples are stored pixel by pixel, 16 and 32 bits in this CPU's
 * byte order. */
void tiff_convert(const struct tiff_kind *kind, const uint8_t *row, uint32_t x, uint32_t width, uint8_t *rgb);
