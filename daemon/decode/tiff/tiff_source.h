/* decode/tiff/tiff_source.h: one picture in a TIFF, from memory, through libtiff. Private to decode/tiff/.
 *
 * Knows the file's layout (strips or tiles, planes, compression) and gives rows of RGB in the file's own orientation.
 */
#pragma once

#include "daemon/decode/picture_format.h"
#include "daemon/decode/tiff/kind.h"

#include <tiffio.h>

struct tiff_source {
        const struct decode_limits *limits; /* the decoder's */
        const uint8_t *bytes;
        uint64_t n_bytes, at; /* at: the next byte that libtiff reads */
        TIFF *tiff;           /* of the open picture */
        char message[200];    /* the first error that libtiff reported */
        uint32_t width, height;
        struct tiff_kind kind;
        uint16_t orientation; /* 1 ... 8 */
        uint16_t compression;
        bool is_separate; /* one plane for each sample */
        bool is_tiled;
        bool is_whole; /* all pixels lie within the file */
        uint32_t tile_width, tile_height;
        uint32_t strip_rows;
        uint64_t n_row;       /* bytes of a row, of all planes together */
        uint64_t n_unit;      /* bytes that libtiff decodes at once: a row or a tile, of one plane */
        enum dlp_dtype dtype; /* of tiff_bands_open(): of each number */
};

/* Takes rows of `width` pixels; see row_band.h, whose functions can be used directly. */
struct tiff_target {
        uint8_t *(*next)(void *userdata);
        int (*push)(void *userdata);
        void *userdata;
};

/* Ends the picture before. Returns 0 or a negative errno with its reason; then there is no open picture. */
int tiff_source_open(struct tiff_source *source, const uint8_t *bytes, size_t n_bytes, struct why *why);

/* The same for a picture whose numbers are read as they are stored, by tiff_bands_read(). */
int tiff_bands_open(struct tiff_source *source, const uint8_t *bytes, size_t n_bytes, struct why *why);

/* Ends the picture, if there is one. */
void tiff_source_close(struct tiff_source *source);

/* Bytes of `work` for reading this box, and the additional memory that libtiff may take. */
uint64_t tiff_source_work(const struct tiff_source *source, const struct box *box);
uint64_t tiff_source_library(const struct tiff_source *source);

/* Gives the rows of `box` to the target. Once for each picture. Returns 0, a negative errno, or what the target
 * returned. */
int tiff_source_read(struct tiff_source *source, const struct box *box, uint8_t *work, const struct tiff_target *target,
                     struct why *why);

/* decode/tiff/tiff_bands.c: all numbers, each pixel's together, rows `stride` bytes apart, as they are stored: Orientation
 * turns nothing. `work` has n_unit bytes. */
int tiff_bands_read(struct tiff_source *source, uint8_t *work, uint8_t *out, size_t stride, struct why *why);

/* -EBADMSG with what libtiff says of the file. */
int tiff_source_fail(const struct tiff_source *source, struct why *why);
