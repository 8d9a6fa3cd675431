#include "daemon/augment/conversion.h"

#include "daemon/augment/noise.h"

#include "daemon/base/half.h"

#include <string.h>

const char *const PIXEL_MODE_NAMES[N_PIXEL_MODES] = { "RGB", "L", "RGBA", "LA", "P", "I;16", "F" };

void conversion_init(struct conversion *conversion) {
        memset(conversion, 0, sizeof(*conversion));
        conversion->format = (struct pixel_format){ .dtype = DLP_DTYPE_UINT8, .n_channels = PIXEL_BYTES };
}

void conversion_set_mode(struct conversion *conversion, enum pixel_mode mode) {
        static const uint32_t N_CHANNELS[N_PIXEL_MODES] = { 3, 1, 4, 2, 1, 1, 1 };

        conversion->format.mode = mode;
        conversion->format.n_channels = N_CHANNELS[mode];
        conversion->format.is_bands = mode == PIXELS_F;
        conversion->format.dtype = mode == PIXELS_I16 ? DLP_DTYPE_UINT16
                                   : mode == PIXELS_F ? DLP_DTYPE_FLOAT32
                                                      : DLP_DTYPE_UINT8;
}

bool conversion_set_bands(struct conversion *conversion, uint32_t n_bands) {
        enum pixel_mode mode = conversion->format.mode;

        conversion->format.is_bands = true;
        conversion->format.n_channels = n_bands;
        return mode == PIXELS_L || mode == PIXELS_I16 || mode == PIXELS_F;
}

bool pixel_format_has_alpha(const struct pixel_format *format) {
        return format->mode == PIXELS_RGBA || format->mode == PIXELS_LA;
}

bool conversion_is_none(const struct conversion *conversion) {
        const struct pixel_format *format = &conversion->format;

        return format->dtype == DLP_DTYPE_UINT8 && format->n_channels == PIXEL_BYTES && !format->channels_first;
}

size_t pixel_format_bytes(const struct pixel_format *format) {
        return format->n_channels * dlp_dtype_bytes(format->dtype);
}

size_t pixel_format_row_bytes(const struct pixel_format *format, uint32_t width) {
        return width * (format->channels_first ? dlp_dtype_bytes(format->dtype) : pixel_format_bytes(format));
}

/* ---- the table ----------------------------------------------------------------------------------------------- */

/* The bits of a float32. */
static uint32_t conversion_number_of(const struct conversion *conversion, uint32_t channel, uint32_t level,
                                     float largest) {
        float number = conversion->multiplies ? (float)level * (1.0f / largest) : (float)level / largest;
        uint32_t bits;

        if (conversion->is_normalized)
                number = (number - conversion->mean[channel]) / conversion->deviation[channel];
        memcpy(&bits, &number, sizeof(bits));
        return bits;
}

static uint16_t half_of(const struct conversion *conversion, uint32_t bits) {
        return conversion->format.dtype == DLP_DTYPE_FLOAT16 ? half_from_float32(bits) : bfloat16_from_float32(bits);
}

bool conversion_makes_floats(const struct conversion *conversion) {
        return conversion->is_normalized || (conversion->has_dtype && conversion->format.dtype != DLP_DTYPE_UINT8);
}

void conversion_finish(struct conversion *conversion) {
        if (!conversion->has_dtype && conversion->is_normalized)
                conversion->format.dtype = DLP_DTYPE_FLOAT32;

        for (uint32_t channel = 0; channel < CHANNELS_MAX; channel++)
                for (uint32_t level = 0; level < 256; level++) {
                        uint32_t bits = conversion_number_of(conversion, channel, level, 255.0f);

                        if (conversion->format.dtype == DLP_DTYPE_FLOAT32)
                                conversion->wide[channel][level] = bits;
                        else if (conversion->format.dtype == DLP_DTYPE_UINT8)
                                conversion->plain[channel][level] = (uint8_t)level;
                        else
                                conversion->narrow[channel][level] = half_of(conversion, bits);
                }
}

void conversion_table(const struct conversion *conversion, const void **ret_table, size_t *ret_n_bytes) {
        *ret_table = conversion->plain;
        *ret_n_bytes = (size_t)conversion->format.n_channels * 256 * dlp_dtype_bytes(conversion->format.dtype);
}

/* ---- converting pixels --------------------------------------------------------------------------------------- */

/* Converts one row of one channel. `step` is the distance of its elements in the output: 1, or the number of channels
 * of a pixel. */
static void row_of_8(const uint8_t *row, uint32_t width, uint8_t *out, uint32_t step) {
        for (size_t x = 0; x < width; x++)
                out[x * step] = row[x * PIXEL_BYTES];
}

static void row_of_16(const uint16_t *table, const uint8_t *row, uint32_t width, uint16_t *out, uint32_t step) {
        for (size_t x = 0; x < width; x++)
                out[x * step] = table[row[x * PIXEL_BYTES]];
}

static void row_of_32(const uint32_t *table, const uint8_t *row, uint32_t width, uint32_t *out, uint32_t step) {
        for (size_t x = 0; x < width; x++)
                out[x * step] = table[row[x * PIXEL_BYTES]];
}

static void conversion_convert_row(const struct conversion *conversion, uint32_t channel, const uint8_t *row,
                                   uint32_t width, void *out, uint32_t step) {
        switch (dlp_dtype_bytes(conversion->format.dtype)) {
        case 4:
                row_of_32(conversion->wide[channel], row, width, out, step);
                break;
        case 2:
                row_of_16(conversion->narrow[channel], row, width, out, step);
                break;
        default:
                row_of_8(row, width, out, step);
                break;
        }
}

/* One row of PIXELS_I16, whose only channel is where a pixel is, whatever comes first. */
static void convert_wide_row(const struct conversion *conversion, const uint8_t *row, uint32_t width, void *out) {
        for (size_t x = 0; x < width; x++) {
                uint32_t value = row[x * PIXEL_BYTES] | (uint32_t)row[x * PIXEL_BYTES + 1] << 8;
                uint32_t bits = conversion_number_of(conversion, 0, value, 65535.0f);

                if (conversion->format.dtype == DLP_DTYPE_UINT16)
                        ((uint16_t *)out)[x] = (uint16_t)value;
                else if (conversion->format.dtype == DLP_DTYPE_FLOAT32)
                        ((uint32_t *)out)[x] = bits;
                else
                        ((uint16_t *)out)[x] = half_of(conversion, bits);
        }
}

/* Where row y of a channel is. */
static const uint8_t *row_of_channel(const struct conversion *conversion, const struct canvas *canvas,
                                     const struct canvas *alpha, uint32_t channel, uint32_t y) {
        bool is_alpha = alpha && channel + 1 == conversion->format.n_channels;

        return is_alpha ? canvas_at(alpha, 0, y) : canvas_at(canvas, 0, y) + channel;
}

/* From a channel to the next one. */
static size_t conversion_plane_bytes(const struct pixel_format *format, uint32_t height, size_t stride,
                                     size_t plane_stride) {
        if (!format->channels_first)
                return dlp_dtype_bytes(format->dtype);
        return plane_stride > 0 ? plane_stride : stride * height;
}

void conversion_run(const struct conversion *conversion, const struct canvas *canvas, const struct canvas *alpha,
                    uint8_t *out, size_t stride, size_t plane_stride) {
        const struct pixel_format *format = &conversion->format;
        size_t n_plane = conversion_plane_bytes(format, canvas->height, stride, plane_stride);
        uint32_t step = format->channels_first ? 1 : format->n_channels;

        for (uint32_t y = 0; y < canvas->height; y++) {
                if (conversion_is_none(conversion)) {
                        memcpy(out + y * stride, canvas_at(canvas, 0, y), (size_t)canvas->width * PIXEL_BYTES);
                        continue;
                }
                if (format->mode == PIXELS_I16) {
                        convert_wide_row(conversion, canvas_at(canvas, 0, y), canvas->width, out + y * stride);
                        continue;
                }
                for (uint32_t channel = 0; channel < format->n_channels; channel++)
                        conversion_convert_row(conversion, channel,
                                               row_of_channel(conversion, canvas, alpha, channel, y), canvas->width,
                                               out + channel * n_plane + y * stride, step);
        }
}

/* ---- erasing ------------------------------------------------------------------------------------------------- */

static void conversion_write_number(const struct conversion *conversion, float number, uint8_t *out) {
        uint32_t bits;
        uint16_t half;

        memcpy(&bits, &number, sizeof(bits));
        if (conversion->format.dtype == DLP_DTYPE_FLOAT32) {
                memcpy(out, &bits, sizeof(bits));
                return;
        }
        half = half_of(conversion, bits);
        memcpy(out, &half, sizeof(half));
}

#define NUMBERS_AT_ONCE 256u

/* A stream of normal numbers. */
struct numbers {
        struct dlp_philox philox;
        uint64_t n_more; /* that are still to be made */
        uint32_t n_left; /* the last ones of `made` */
        float made[NUMBERS_AT_ONCE];
};

static float conversion_next_number(struct numbers *numbers) {
        if (numbers->n_left == 0) {
                uint32_t n = numbers->n_more < NUMBERS_AT_ONCE ? (uint32_t)numbers->n_more : NUMBERS_AT_ONCE;

                noise_normals(&numbers->philox, n, numbers->made + NUMBERS_AT_ONCE - n);
                numbers->n_more -= n;
                numbers->n_left = n;
        }
        return numbers->made[NUMBERS_AT_ONCE - numbers->n_left--];
}

void conversion_erase(const struct conversion *conversion, const struct erasure *erasure, uint32_t height, uint8_t *out,
                      size_t stride, size_t plane_stride) {
        const struct pixel_format *format = &conversion->format;
        size_t n_plane = conversion_plane_bytes(format, height, stride, plane_stride);
        size_t n_pixel = format->channels_first ? dlp_dtype_bytes(format->dtype) : pixel_format_bytes(format);
        const struct box *box = &erasure->box;
        struct numbers numbers = { .n_left = 0 };

        noise_begin(erasure->seed, &numbers.philox);
        numbers.n_more = (uint64_t)box->width * box->height * format->n_channels;
        for (uint32_t y = box->y; y < box->y + box->height; y++)
                for (uint32_t x = box->x; x < box->x + box->width; x++)
                        for (uint32_t channel = 0; channel < format->n_channels; channel++)
                                conversion_write_number(conversion,
                                                        erasure->is_noise ? conversion_next_number(&numbers)
                                                                          : erasure->values[channel],
                                                        out + channel * n_plane + y * stride + x * n_pixel);
}
