#include "daemon/decode/tiff/kind.h"

#include "daemon/decode/picture_format.h"
#include "proto/base/cleanup.h"

#include <errno.h>
#include <string.h>

#include <tiff.h>

/* ---- which combinations are supported ------------------------------------------------------------------------ */

/* The samples in addition to the colours are `first`, then only unspecified ones. */
static bool extras_are(const struct tiff_tags *tags, unsigned n, uint16_t first) {
        if (tags->n_extras != n)
                return false;
        for (unsigned i = 0; i < n; i++)
                if (tags->extras[i] != (i == 0 ? first : EXTRASAMPLE_UNSPECIFIED))
                        return false;
        return true;
}

static bool is_separate(const struct tiff_tags *tags) {
        return tags->planar == PLANARCONFIG_SEPARATE && tags->n_samples > 1;
}

/* Grey or a palette, perhaps with alpha. */
static bool is_indices(const struct tiff_tags *tags) {
        if (tags->sample_format != SAMPLEFORMAT_UINT)
                return false;
        if (tags->n_samples == 1)
                return tags->n_extras == 0 &&
                       (tags->bits == 1 || tags->bits == 2 || tags->bits == 4 || tags->bits == 8);
        return tags->n_samples == 2 && tags->bits == 8 && tags->photometric != PHOTOMETRIC_MINISWHITE &&
               tags->fill_order == FILLORDER_MSB2LSB && extras_are(tags, 1, EXTRASAMPLE_UNASSALPHA) &&
               !is_separate(tags);
}

/* Grey of more than 8 bits. */
static bool wide_grey(const struct tiff_tags *tags, enum tiff_samples *ret_samples) {
        bool black_is_0 = tags->photometric == PHOTOMETRIC_MINISBLACK;

        if (tags->n_samples != 1 || tags->n_extras != 0 || tags->fill_order != FILLORDER_MSB2LSB)
                return false;
        if (tags->bits == 16 && tags->sample_format == SAMPLEFORMAT_UINT) {
                *ret_samples = TIFF_GREY_16; /* little endian: Pillow also reads "0 is white" as "0 is black" */
                return black_is_0 || !tags->is_big_endian;
        }
        if (tags->bits == 16 && tags->sample_format == SAMPLEFORMAT_INT) {
                *ret_samples = TIFF_GREY_16S;
                return black_is_0;
        }
        if (tags->bits == 32 && tags->sample_format == SAMPLEFORMAT_IEEEFP) {
                *ret_samples = TIFF_GREY_FLOAT;
                return true;
        }
        *ret_samples = TIFF_GREY_32S;
        return tags->bits == 32 && black_is_0 &&
               (tags->sample_format == SAMPLEFORMAT_INT ||
                (tags->sample_format == SAMPLEFORMAT_UINT && !tags->is_big_endian));
}

static bool is_colors(const struct tiff_tags *tags, enum tiff_samples *ret_samples) {
        unsigned n_more = tags->n_samples - 3u;
        bool plain = n_more == 0 ? tags->n_extras == 0 : extras_are(tags, n_more, EXTRASAMPLE_UNASSALPHA);

        if (tags->n_samples < 3 || n_more > (tags->bits == 8 ? 3 : 1) || (tags->bits != 8 && tags->bits != 16) ||
            tags->sample_format != SAMPLEFORMAT_UINT || (tags->fill_order != FILLORDER_MSB2LSB && tags->bits != 8) ||
            (tags->fill_order != FILLORDER_MSB2LSB && n_more > 0))
                return false;
        *ret_samples = TIFF_COLORS;
        if (is_separate(tags))
                return tags->bits == 8 && n_more <= 1 && plain;
        if (plain || extras_are(tags, n_more, EXTRASAMPLE_UNSPECIFIED))
                return true;
        *ret_samples = TIFF_COLORS_ALPHA;
        return extras_are(tags, n_more, EXTRASAMPLE_ASSOCALPHA);
}

static bool is_inks(const struct tiff_tags *tags) {
        unsigned n_more = tags->n_samples - 4u;

        if (tags->n_samples < 4 || n_more > 2 || tags->sample_format != SAMPLEFORMAT_UINT ||
            tags->fill_order != FILLORDER_MSB2LSB || !extras_are(tags, n_more, EXTRASAMPLE_UNSPECIFIED))
                return false;
        if (tags->bits == 16)
                return n_more == 0 && !tags->is_big_endian && !is_separate(tags);
        return tags->bits == 8 && (n_more == 0 || !is_separate(tags));
}

/* libtiff and libjpeg convert it to RGB. */
static bool is_jpegs_ycbcr(const struct tiff_tags *tags) {
        return tags->compression == COMPRESSION_JPEG && tags->n_samples == 3 && tags->n_extras == 0 &&
               tags->bits == 8 && !is_separate(tags);
}

static bool find_samples(const struct tiff_tags *tags, enum tiff_samples *ret_samples) {
        switch (tags->photometric) {
        case PHOTOMETRIC_MINISWHITE:
        case PHOTOMETRIC_MINISBLACK:
                *ret_samples = TIFF_INDICES;
                return is_indices(tags) || wide_grey(tags, ret_samples);
        case PHOTOMETRIC_PALETTE:
                *ret_samples = TIFF_INDICES;
                return is_indices(tags);
        case PHOTOMETRIC_RGB:
                return is_colors(tags, ret_samples);
        case PHOTOMETRIC_SEPARATED:
                *ret_samples = TIFF_INKS;
                return is_inks(tags);
        case PHOTOMETRIC_YCBCR:
                *ret_samples = TIFF_COLORS;
                return is_jpegs_ycbcr(tags);
        default:
                return false;
        }
}

/* Which sample of a pixel is alpha. Unspecified ones are not. */
static int alpha_of(const struct tiff_tags *tags) {
        bool is_first_extra = tags->n_extras > 0 &&
                              (tags->extras[0] == EXTRASAMPLE_UNASSALPHA || tags->extras[0] == EXTRASAMPLE_ASSOCALPHA);

        return is_first_extra ? tags->n_samples - tags->n_extras : -1;
}

int tiff_kind_of(const struct tiff_tags *tags, struct tiff_kind *ret_kind, struct why *why) {
        enum tiff_samples samples;

        if (!find_samples(tags, &samples))
                return why_set(why, -ENOTSUP,
                               "TIFF: photometric %u with %u samples of %u bits (format %u, %u extra, planes %u, bit "
                               "order %u, compression %u, %s endian) is not handled; decode(mode=F, bands=N) would "
                               "deliver bands of whole bytes as numbers",
                               tags->photometric, tags->n_samples, tags->bits, tags->sample_format, tags->n_extras,
                               tags->planar, tags->fill_order, tags->compression,
                               tags->is_big_endian ? "big" : "little");
        ret_kind->samples = samples;
        ret_kind->as = DECODE_COLORS;
        ret_kind->has_palette = tags->photometric == PHOTOMETRIC_PALETTE;
        ret_kind->alpha = alpha_of(tags);
        ret_kind->bits = tags->bits;
        ret_kind->n_samples = tags->n_samples;
        if (samples == TIFF_INDICES && tags->photometric != PHOTOMETRIC_PALETTE)
                palette_set_levels(&ret_kind->palette, tags->bits, tags->photometric == PHOTOMETRIC_MINISWHITE);
        return 0;
}

int tiff_kind_of_numbers(const struct tiff_tags *tags, struct tiff_kind *ret_kind, enum dlp_dtype *ret_dtype,
                         struct why *why) {
        static const struct {
                uint16_t bits, sample_format;
                enum dlp_dtype dtype;
        } TYPES[] = {
                { 8, SAMPLEFORMAT_UINT, DLP_DTYPE_UINT8 },      { 8, SAMPLEFORMAT_INT, DLP_DTYPE_INT8 },
                { 16, SAMPLEFORMAT_UINT, DLP_DTYPE_UINT16 },    { 16, SAMPLEFORMAT_INT, DLP_DTYPE_INT16 },
                { 32, SAMPLEFORMAT_UINT, DLP_DTYPE_UINT32 },    { 32, SAMPLEFORMAT_INT, DLP_DTYPE_INT32 },
                { 16, SAMPLEFORMAT_IEEEFP, DLP_DTYPE_FLOAT16 }, { 32, SAMPLEFORMAT_IEEEFP, DLP_DTYPE_FLOAT32 },
                { 64, SAMPLEFORMAT_IEEEFP, DLP_DTYPE_FLOAT64 },
        };
        uint16_t format = tags->sample_format == SAMPLEFORMAT_VOID ? SAMPLEFORMAT_UINT : tags->sample_format;
        bool is_subsampled = tags->photometric == PHOTOMETRIC_YCBCR && !is_jpegs_ycbcr(tags);

        for (size_t i = 0; i < ARRAY_SIZE(TYPES) && !is_subsampled; i++)
                if (TYPES[i].bits == tags->bits && TYPES[i].sample_format == format) {
                        ret_kind->samples = TIFF_NUMBERS;
                        ret_kind->alpha = -1;
                        ret_kind->bits = tags->bits;
                        ret_kind->n_samples = tags->n_samples;
                        *ret_dtype = TYPES[i].dtype;
                        return 0;
                }
        return why_set(
                why, -ENOTSUP,
                "TIFF: photometric %u with samples of %u bits (format %u, compression %u) are not numbers of 8, 16, "
                "32 or 64 bits",
                tags->photometric, tags->bits, tags->sample_format, tags->compression);
}

int tiff_kind_as(struct tiff_kind *kind, enum decode_as as, struct why *why) {
        bool is_number = kind->samples == TIFF_INDICES && kind->n_samples == 1;

        if (as == DECODE_ALPHA && kind->alpha < 0)
                return DECODE_OPAQUE;
        if ((as == DECODE_NUMBERS && !is_number) || (as == DECODE_WIDE && kind->samples != TIFF_GREY_16))
                return refuse_as(as,
                                 is_number || kind->samples == TIFF_INDICES ? "at most 8 bits, or alpha"
                                 : kind->n_samples > 1                      ? "several colours"
                                                                            : "grey of 16 or 32 bits",
                                 why);
        kind->as = as;
        if (as == DECODE_NUMBERS && kind->has_palette)
                palette_set_grey(&kind->palette);
        for (unsigned i = 0; i < 256 && as == DECODE_NUMBERS && kind->bits == 1; i++)
                put_level(kind->palette.colors[i][0] != 0, kind->palette.colors[i]);
        return 0;
}

/* ---- samples -> RGB ------------------------------------------------------------------------------------------ */

static uint16_t native_16(const uint8_t *bytes) {
        uint16_t value;

        memcpy(&value, bytes, sizeof(value));
        return value;
}

static int32_t native_32(const uint8_t *bytes) {
        int32_t value;

        memcpy(&value, bytes, sizeof(value));
        return value;
}

static uint8_t clip_int(int32_t value) {
        return value < 0 ? 0 : value > 255 ? 255 : (uint8_t)value;
}

static uint8_t clip_float(const uint8_t *bytes) {
        float value;

        memcpy(&value, bytes, sizeof(value));
        if (value >= 255)
                return 255;
        return value > 0 ? (uint8_t)value : 0; /* NaN becomes 0 */
}

static uint8_t wide_level(enum tiff_samples samples, const uint8_t *bytes) {
        switch (samples) {
        case TIFF_GREY_16:
                return clip_grey_16(native_16(bytes));
        case TIFF_GREY_16S:
                return clip_int((int16_t)native_16(bytes));
        case TIFF_GREY_32S:
                return clip_int(native_32(bytes));
        default:
                return clip_float(bytes);
        }
}

/* A sample of 8 bits, or the high half of 16. */
static uint8_t high_byte(const struct tiff_kind *kind, const uint8_t *pixel, unsigned idx) {
        return kind->bits == 16 ? (uint8_t)(native_16(pixel + 2 * idx) >> 8) : pixel[idx];
}

static void divide_by_alpha(uint8_t *rgb, unsigned alpha) {
        for (unsigned c = 0; c < PIXEL_BYTES; c++) {
                unsigned value = alpha == 0 ? 0 : rgb[c] * 255u / alpha;

                rgb[c] = (uint8_t)(value > 255 ? 255 : value);
        }
}

static void convert_colors(const struct tiff_kind *kind, const uint8_t *pixel, uint32_t width, uint8_t *rgb) {
        unsigned step = kind->n_samples * (kind->bits / 8);

        for (uint32_t i = 0; i < width; i++, pixel += step, rgb += PIXEL_BYTES) {
                for (unsigned c = 0; c < PIXEL_BYTES; c++)
                        rgb[c] = high_byte(kind, pixel, c);
                if (kind->samples == TIFF_COLORS_ALPHA)
                        divide_by_alpha(rgb, high_byte(kind, pixel, 3));
        }
}

static void convert_inks(const struct tiff_kind *kind, const uint8_t *pixel, uint32_t width, uint8_t *rgb) {
        unsigned step = kind->n_samples * (kind->bits / 8);

        if (kind->bits == 8) {
                cmyk_ink_to_rgb(pixel, step, width, rgb);
                return;
        }
        for (uint32_t i = 0; i < width; i++, pixel += step, rgb += PIXEL_BYTES) {
                uint8_t cmyk[4];

                for (unsigned c = 0; c < 4; c++)
                        cmyk[c] = high_byte(kind, pixel, c);
                cmyk_ink_to_rgb(cmyk, 4, 1, rgb);
        }
}

static void convert_indices(const struct tiff_kind *kind, const uint8_t *row, uint32_t x, uint32_t width,
                            uint8_t *rgb) {
        if (kind->n_samples == 1)
                indices_to_rgb(&kind->palette, kind->bits, row, x, width, rgb);
        else /* each index is followed by its alpha, which is dropped */
                for (uint32_t i = 0; i < width; i++)
                        memcpy(rgb + (size_t)i * PIXEL_BYTES, kind->palette.colors[row[((size_t)x + i) * 2]],
                               PIXEL_BYTES);
}

void tiff_convert(const struct tiff_kind *kind, const uint8_t *row, uint32_t x, uint32_t width, uint8_t *rgb) {
        size_t n_pixel = (size_t)kind->n_samples * kind->bits / 8;

        if (kind->as == DECODE_ALPHA || kind->as == DECODE_WIDE) {
                for (uint32_t i = 0; i < width; i++, rgb += PIXEL_BYTES) {
                        const uint8_t *pixel = row + ((size_t)x + i) * n_pixel;

                        if (kind->as == DECODE_WIDE)
                                put_wide(native_16(pixel), rgb);
                        else
                                put_level(high_byte(kind, pixel, (unsigned)kind->alpha), rgb);
                }
                return;
        }
        switch (kind->samples) {
        case TIFF_INDICES:
                convert_indices(kind, row, x, width, rgb);
                break;
        case TIFF_COLORS:
        case TIFF_COLORS_ALPHA:
                convert_colors(kind, row + x * n_pixel, width, rgb);
                break;
        case TIFF_INKS:
                convert_inks(kind, row + x * n_pixel, width, rgb);
                break;
        default:
                for (uint32_t i = 0; i < width; i++)
                        memset(rgb + (size_t)i * PIXEL_BYTES,
                               wide_level(kind->samples, row + ((size_t)x + i) * n_pixel), PIXEL_BYTES);
        }
}
