#include "daemon/decode/tiff/tiff_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY_BYTES     (1u << 20)   /* memory of libtiff and of its codecs' tables */
#define LIBRARY_PIXEL     192u         /* bytes for each column: rows that predictors, fax and JPEG keep */
#define JPEG_COEFFICIENTS (100u << 20) /* bytes: libtiff refuses progressive JPEGs that need more */

/* ---- libtiff reads memory ------------------------------------------------------------------------------------ */

static tmsize_t tiff_source_on_read(thandle_t handle, void *out, tmsize_t n_wanted) {
        struct tiff_source *source = handle;
        uint64_t n = source->at < source->n_bytes ? source->n_bytes - source->at : 0;

        if (n_wanted < 0)
                return -1;
        if (n > (uint64_t)n_wanted)
                n = (uint64_t)n_wanted;
        memcpy(out, source->bytes + source->at, n);
        source->at += n;
        return (tmsize_t)n;
}

static tmsize_t on_write(thandle_t handle, void *bytes, tmsize_t n_bytes) {
        (void)handle;
        (void)bytes;
        (void)n_bytes;
        return -1;
}

static toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
        struct tiff_source *source = handle;

        source->at = offset + (whence == SEEK_CUR ? source->at : whence == SEEK_END ? source->n_bytes : 0);
        return source->at;
}

static int on_close(thandle_t handle) {
        (void)handle;
        return 0;
}

static toff_t on_size(thandle_t handle) {
        struct tiff_source *source = handle;

        return source->n_bytes;
}

/* Returns 1: libtiff then does not print the error. */
static int tiff_source_on_error(TIFF *tiff, void *userdata, const char *module, const char *format, va_list arguments)
        __attribute__((format(printf, 4, 0)));
static int tiff_source_on_error(TIFF *tiff, void *userdata, const char *module, const char *format, va_list arguments) {
        struct tiff_source *source = userdata;

        (void)tiff;
        (void)module;
        if (!source->message[0])
                vsnprintf(source->message, sizeof(source->message), format, arguments);
        return 1;
}

static int on_warning(TIFF *tiff, void *userdata, const char *module, const char *format, va_list arguments) {
        (void)tiff;
        (void)userdata;
        (void)module;
        (void)format;
        (void)arguments;
        return 1;
}

int tiff_source_fail(const struct tiff_source *source, struct why *why) {
        return why_set(why, -EBADMSG, "TIFF: %s",
                       source->message[0] ? source->message : "the file is damaged or cut short");
}

void tiff_source_close(struct tiff_source *source) {
        if (source->tiff)
                TIFFClose(source->tiff);
        source->tiff = NULL;
}

/* "rm": read, and do not map memory. */
static int tiff_source_begin(struct tiff_source *source, struct why *why) {
        TIFFOpenOptions *options = TIFFOpenOptionsAlloc();

        if (!options)
                return why_set(why, -ENOMEM, "TIFF: no memory");
        TIFFOpenOptionsSetMaxSingleMemAlloc(options, source->limits->max_scratch_bytes > INT64_MAX
                                                             ? INT64_MAX
                                                             : (tmsize_t)source->limits->max_scratch_bytes);
        TIFFOpenOptionsSetErrorHandlerExtR(options, tiff_source_on_error, source);
        TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, source);
        source->message[0] = '\0';
        source->at = 0;
        source->tiff = TIFFClientOpenExt("TIFF", "rm", source, tiff_source_on_read, on_write, on_seek, on_close,
                                         on_size, NULL, NULL, options);
        TIFFOpenOptionsFree(options);
        return source->tiff ? 0 : tiff_source_fail(source, why);
}

/* ---- tags ---------------------------------------------------------------------------------------------------- */

/* Those whose memory use is known; the others are LZMA, Zstandard, WebP, LERC, JBIG, old JPEG and scanners' own. */
static bool is_handled(uint16_t compression) {
        static const uint16_t handled[] = {
                COMPRESSION_NONE,      COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3,
                COMPRESSION_CCITTFAX4, COMPRESSION_LZW,      COMPRESSION_JPEG,
                COMPRESSION_PACKBITS,  COMPRESSION_DEFLATE,  COMPRESSION_ADOBE_DEFLATE,
        };

        for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
                if (handled[i] == compression)
                        return true;
        return false;
}

static int read_tags(const struct tiff_source *source, struct tiff_tags *ret_tags, struct why *why) {
        struct tiff_tags tags = { .is_big_endian = source->bytes[0] == 'M' };
        uint16_t *extras = NULL;

        if (!TIFFGetField(source->tiff, TIFFTAG_PHOTOMETRIC, &tags.photometric))
                return why_set(why, -EBADMSG, "TIFF: the tag PhotometricInterpretation is missing");
        TIFFGetFieldDefaulted(source->tiff, TIFFTAG_BITSPERSAMPLE, &tags.bits);
        TIFFGetFieldDefaulted(source->tiff, TIFFTAG_SAMPLEFORMAT, &tags.sample_format);
        TIFFGetFieldDefaulted(source->tiff, TIFFTAG_SAMPLESPERPIXEL, &tags.n_samples);
        TIFFGetFieldDefaulted(source->tiff, TIFFTAG_PLANARCONFIG, &tags.planar);
        TIFFGetFieldDefaulted(source->tiff, TIFFTAG_FILLORDER, &tags.fill_order);
        TIFFGetFieldDefaulted(source->tiff, TIFFTAG_COMPRESSION, &tags.compression);
        TIFFGetFieldDefaulted(source->tiff, TIFFTAG_EXTRASAMPLES, &tags.n_extras, &extras);
        for (unsigned i = 0; i < tags.n_extras && i < 4 && extras; i++)
                tags.extras[i] = extras[i];
        if (!is_handled(tags.compression))
                return why_set(why, -ENOTSUP,
                               "TIFF: compression %u is not handled (none, LZW, deflate, PackBits, fax and JPEG are)",
                               tags.compression);
        *ret_tags = tags;
        return 0;
}

static int read_colors(struct tiff_source *source, unsigned bits, struct why *why) {
        uint16_t *red, *green, *blue;

        if (!TIFFGetField(source->tiff, TIFFTAG_COLORMAP, &red, &green, &blue))
                return why_set(why, -EBADMSG, "TIFF: the palette is missing");
        palette_set_grey(&source->kind.palette);
        for (unsigned i = 0; i < 1u << bits; i++) {
                source->kind.palette.colors[i][0] = (uint8_t)(red[i] >> 8);
                source->kind.palette.colors[i][1] = (uint8_t)(green[i] >> 8);
                source->kind.palette.colors[i][2] = (uint8_t)(blue[i] >> 8);
        }
        return 0;
}

static bool is_all_there(const struct tiff_source *source) {
        uint32_t n = source->is_tiled ? TIFFNumberOfTiles(source->tiff) : TIFFNumberOfStrips(source->tiff);

        for (uint32_t i = 0; i < n; i++) {
                uint64_t at = TIFFGetStrileOffset(source->tiff, i), n_bytes = TIFFGetStrileByteCount(source->tiff, i);

                if (at > source->n_bytes || n_bytes > source->n_bytes - at)
                        return false;
        }
        return true;
}

/* Rows from libtiff must have the size that the meaning of the samples requires. */
static int read_layout(struct tiff_source *source, const struct tiff_tags *tags, struct why *why) {
        unsigned n_together = source->is_separate ? 1 : source->kind.n_samples;
        uint64_t n_plane_row, n_expected;
        tmsize_t n_unit;

        source->is_tiled = TIFFIsTiled(source->tiff);
        source->n_row = ((uint64_t)source->width * tags->bits * source->kind.n_samples + 7) / 8;
        n_plane_row = ((uint64_t)source->width * tags->bits * n_together + 7) / 8;
        if (source->is_tiled) {
                source->tile_width = source->tile_height = 0;
                TIFFGetField(source->tiff, TIFFTAG_TILEWIDTH, &source->tile_width);
                TIFFGetField(source->tiff, TIFFTAG_TILELENGTH, &source->tile_height);
                if (source->tile_width == 0 || source->tile_height == 0 || source->tile_width > INT32_MAX / 64 ||
                    source->tile_height > INT32_MAX / 64)
                        return why_set(why, -EBADMSG, "TIFF: tiles of %" PRIu32 " x %" PRIu32 " pixels",
                                       source->tile_width, source->tile_height);
                n_expected = ((uint64_t)source->tile_width * tags->bits * n_together + 7) / 8 * source->tile_height;
                n_unit = TIFFTileSize(source->tiff);
        } else {
                TIFFGetFieldDefaulted(source->tiff, TIFFTAG_ROWSPERSTRIP, &source->strip_rows);
                if (source->strip_rows == 0 || source->strip_rows > source->height)
                        source->strip_rows = source->height;
                n_expected = n_plane_row;
                n_unit = TIFFScanlineSize(source->tiff);
        }
        if (n_unit <= 0 || (uint64_t)n_unit != n_expected)
                return tiff_source_fail(source, why);
        source->n_unit = n_expected;
        source->is_whole = is_all_there(source);
        return 0;
}

static int tiff_source_read_header(struct tiff_source *source, bool is_bands, struct why *why) {
        struct tiff_tags tags;
        int r;

        source->width = source->height = 0;
        TIFFGetField(source->tiff, TIFFTAG_IMAGEWIDTH, &source->width);
        TIFFGetField(source->tiff, TIFFTAG_IMAGELENGTH, &source->height);
        if (source->width == 0 || source->height == 0 || source->width > INT32_MAX / 64)
                return why_set(why, -EBADMSG, "TIFF: the header says %" PRIu32 " x %" PRIu32 " pixels", source->width,
                               source->height);
        r = check_pixels(source->limits, source->width, source->height, why);
        if (r == 0)
                r = read_tags(source, &tags, why);
        if (r == 0 && is_bands)
                r = tiff_kind_of_numbers(&tags, &source->kind, &source->dtype, why);
        else if (r == 0)
                r = tiff_kind_of(&tags, &source->kind, why);
        if (r == 0 && !is_bands && tags.photometric == PHOTOMETRIC_PALETTE)
                r = read_colors(source, tags.bits, why);
        if (r < 0)
                return r;

        source->compression = tags.compression;
        source->is_separate = tags.planar == PLANARCONFIG_SEPARATE && tags.n_samples > 1;
        TIFFGetFieldDefaulted(source->tiff, TIFFTAG_ORIENTATION, &source->orientation);
        if (tags.photometric == PHOTOMETRIC_YCBCR)
                TIFFSetField(source->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
        return read_layout(source, &tags, why);
}

static int tiff_source_open_source(struct tiff_source *source, const uint8_t *bytes, size_t n_bytes, bool is_bands,
                                   struct why *why) {
        int r;

        tiff_source_close(source);
        source->bytes = bytes;
        source->n_bytes = n_bytes;
        r = tiff_source_begin(source, why);
        if (r == 0)
                r = tiff_source_read_header(source, is_bands, why);
        if (r < 0)
                tiff_source_close(source);
        return r;
}

int tiff_source_open(struct tiff_source *source, const uint8_t *bytes, size_t n_bytes, struct why *why) {
        return tiff_source_open_source(source, bytes, n_bytes, false, why);
}

int tiff_bands_open(struct tiff_source *source, const uint8_t *bytes, size_t n_bytes, struct why *why) {
        return tiff_source_open_source(source, bytes, n_bytes, true, why);
}

/* ---- memory -------------------------------------------------------------------------------------------------- */

static unsigned planes(const struct tiff_source *source) {
        return source->is_separate ? source->kind.n_samples : 1;
}

/* Strips: one row; if each plane is read on its own, also all rows of the box. Tiles: one tile of each plane, the same
 * tiles pixel by pixel, and the box's part of a row of tiles. */
uint64_t tiff_source_work(const struct tiff_source *source, const struct box *box) {
        if (source->is_tiled)
                return source->n_unit * (source->is_separate ? 1 + planes(source) : 1) +
                       (uint64_t)box->width * PIXEL_BYTES * source->tile_height;
        return source->n_unit + (source->is_separate ? (uint64_t)box->width * box->height * planes(source) : 0);
}

uint64_t tiff_source_library(const struct tiff_source *source) {
        uint64_t columns = source->is_tiled ? source->tile_width : source->width;
        uint64_t rows = source->is_tiled ? source->tile_height : source->strip_rows;
        uint64_t n_jpeg = columns * rows * source->kind.n_samples * 2;

        if (source->compression != COMPRESSION_JPEG)
                n_jpeg = 0;
        else if (n_jpeg > JPEG_COEFFICIENTS)
                n_jpeg = JPEG_COEFFICIENTS;
        return LIBRARY_BYTES + source->n_bytes + columns * LIBRARY_PIXEL + n_jpeg;
}

/* ---- pixels -------------------------------------------------------------------------------------------------- */

static bool tiff_source_is_within(uint32_t y, const struct box *box) {
        return y >= box->y && y - box->y < box->height;
}

/* The rows that have to be decoded for the box: from the beginning of its first strip, because no codec can skip; if
 * the file was cut, all rows, because that must be detected. */
static void tiff_source_rows_of(const struct tiff_source *source, const struct box *box, uint32_t *ret_first,
                                uint32_t *ret_end) {
        uint32_t unit = source->is_tiled ? source->tile_height : source->strip_rows;

        *ret_first = source->is_whole ? box->y / unit * unit : 0;
        *ret_end = source->is_whole ? box->y + box->height : source->height;
}

static int read_strips(struct tiff_source *source, const struct box *box, uint8_t *row,
                       const struct tiff_target *target, struct why *why) {
        uint32_t first, end;
        int r = 0;

        tiff_source_rows_of(source, box, &first, &end);
        for (uint32_t y = first; r == 0 && y < end; y++) {
                if (TIFFReadScanline(source->tiff, row, y, 0) < 0)
                        return tiff_source_fail(source, why);
                if (!tiff_source_is_within(y, box))
                        continue;
                tiff_convert(&source->kind, row, box->x, box->width, target->next(target->userdata));
                r = target->push(target->userdata);
        }
        return r;
}

/* Reads plane after plane, each from top to bottom: changing the plane within a strip would restart the strip. */
static int read_planes(struct tiff_source *source, const struct box *box, uint8_t *row, uint8_t *together,
                       const struct tiff_target *target, struct why *why) {
        unsigned n_planes = planes(source);
        size_t n_together = (size_t)box->width * n_planes;
        uint32_t first, end;
        int r = 0;

        tiff_source_rows_of(source, box, &first, &end);
        for (unsigned plane = 0; plane < n_planes; plane++)
                for (uint32_t y = first; y < end; y++) {
                        if (TIFFReadScanline(source->tiff, row, y, (uint16_t)plane) < 0)
                                return tiff_source_fail(source, why);
                        for (uint32_t x = 0; tiff_source_is_within(y, box) && x < box->width; x++)
                                together[(y - box->y) * n_together + (size_t)x * n_planes + plane] = row[box->x + x];
                }
        for (uint32_t y = 0; r == 0 && y < box->height; y++) {
                tiff_convert(&source->kind, together + y * n_together, 0, box->width, target->next(target->userdata));
                r = target->push(target->userdata);
        }
        return r;
}

/* Decodes the tile that begins at (x, y); returns its samples, pixel by pixel, or NULL. */
static const uint8_t *read_tile(struct tiff_source *source, uint32_t x, uint32_t y, uint8_t *tile) {
        unsigned n_planes = planes(source);
        uint8_t *together = tile + source->n_unit;

        for (unsigned plane = 0; plane < n_planes; plane++) {
                if (TIFFReadTile(source->tiff, tile, x, y, 0, (uint16_t)plane) < 0)
                        return NULL;
                for (uint64_t i = 0; source->is_separate && i < source->n_unit; i++)
                        together[i * n_planes + plane] = tile[i];
        }
        return source->is_separate ? together : tile;
}

/* Writes the part of a row of tiles that lies in the box to `rgb`, rows of the box's width. */
static int read_tile_row(struct tiff_source *source, const struct box *box, uint32_t y, uint8_t *tile, uint8_t *rgb,
                         struct why *why) {
        uint32_t right = box->x + box->width, end = source->is_whole ? right : source->width;
        uint64_t n_row = source->is_separate ? (uint64_t)source->tile_width * planes(source)
                                             : source->n_unit / source->tile_height;

        for (uint32_t x = source->is_whole ? box->x / source->tile_width * source->tile_width : 0; x < end;
             x += source->tile_width) {
                uint32_t from = x > box->x ? x : box->x;
                uint32_t to = x + source->tile_width < right ? x + source->tile_width : right;
                const uint8_t *samples = read_tile(source, x, y, tile);

                if (!samples)
                        return tiff_source_fail(source, why);
                for (uint32_t i = 0; from < to && i < source->tile_height; i++)
                        tiff_convert(&source->kind, samples + i * n_row, from - x, to - from,
                                     rgb + ((size_t)i * box->width + (from - box->x)) * PIXEL_BYTES);
        }
        return 0;
}

static int tiff_source_read_tiles(struct tiff_source *source, const struct box *box, uint8_t *work,
                                  const struct tiff_target *target, struct why *why) {
        size_t n_row = (size_t)box->width * PIXEL_BYTES;
        uint8_t *rgb = work + tiff_source_work(source, box) - n_row * source->tile_height;
        uint32_t first, end;
        int r = 0;

        tiff_source_rows_of(source, box, &first, &end);
        for (uint32_t y = first; r == 0 && y < end; y += source->tile_height) {
                r = read_tile_row(source, box, y, work, rgb, why);
                for (uint32_t i = 0; r == 0 && i < source->tile_height; i++)
                        if (tiff_source_is_within(y + i, box)) {
                                memcpy(target->next(target->userdata), rgb + i * n_row, n_row);
                                r = target->push(target->userdata);
                        }
        }
        return r;
}

int tiff_source_read(struct tiff_source *source, const struct box *box, uint8_t *work, const struct tiff_target *target,
                     struct why *why) {
        if (source->is_tiled)
                return tiff_source_read_tiles(source, box, work, target, why);
        if (source->is_separate)
                return read_planes(source, box, work, work + source->n_unit, target, why);
        return read_strips(source, box, work, target, why);
}
