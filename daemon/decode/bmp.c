/* decode/bmp.c: Windows and OS/2 bitmaps.
 *
 * Files are interpreted as in Pillow 9.4: alpha is not part of the colours, 5 and 6 bits become 8 by multiplying with
 * 255 / 31 and 255 / 63, and values above the palette are black, as from Pillow 10.1 on. Rows lie in the file one by
 * one, usually from the bottom up, so only those of the box are read. A run-length coded picture is expanded first, one
 * byte for each pixel.
 *
 * Pillow reads some rare files wrongly, or other readers disagree with it. These files are refused, and the error names
 * the reason: skips (delta) and half-filled bytes in run-length coding, and palettes of grey that Pillow takes for
 * another depth. */
#include "daemon/base/little_endian.h"
#include "daemon/decode/picture_format.h"
#include "daemon/decode/row_band.h"
#include "daemon/decode/samples.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FILE_HEADER 14u /* "BM", size, reserved, where the pixels begin */
#define OS2_HEADER  12u /* the oldest picture header: 16-bit sizes, 3 bytes a colour */
#define INFO_HEADER 40u /* the usual one */

enum {
        PLAIN = 0,
        RLE8 = 1,
        RLE4 = 2,
        BITFIELDS = 3
};

struct bmp_state {
        const struct decode_limits *limits; /* the decoder's */
        const uint8_t *bytes;
        size_t n_bytes;
        uint32_t width, height; /* pixels */
        bool is_top_down;
        unsigned bits;        /* a pixel */
        uint32_t compression; /* PLAIN, RLE8, RLE4, BITFIELDS */
        uint64_t at;          /* where the pixels begin */
        uint64_t stride;      /* bytes from row to row */
        uint8_t order[3];     /* 24 and 32 bits: which byte is red, green, blue */
        int alpha;            /* which byte is alpha; -1: none */
        unsigned green_bits;  /* 16 bits: 5 or 6 */
        struct palette palette;
};

static bool bmp_probe(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= FILE_HEADER + 4 && bytes[0] == 'B' && bytes[1] == 'M';
}

static int bmp_state_new(const struct decode_limits *limits, enum decode_jpeg jpeg, void **ret_state) {
        struct bmp_state *state = calloc(1, sizeof(*state));

        if (!state)
                return -ENOMEM;
        state->limits = limits;
        *ret_state = state;
        return 0;
}

/* ---- header -------------------------------------------------------------------------------------------------- */

/* Layouts of bits that Pillow knows, and the byte of red, green and blue in each. */
static const struct {
        unsigned bits;
        uint32_t red, green, blue;
        bool any_alpha;
        uint32_t alpha;
        uint8_t order[3];
        int byte_of_alpha;
} LAYOUTS[] = {
        { 32, 0xff0000, 0xff00, 0xff, false, 0, { 2, 1, 0 }, -1 },
        { 32, 0xff0000, 0xff00, 0xff, false, 0xff000000, { 2, 1, 0 }, 3 },
        { 32, 0xff000000, 0xff0000, 0xff00, false, 0, { 3, 2, 1 }, -1 },
        { 32, 0xff000000, 0xff0000, 0xff00, false, 0xff, { 3, 2, 1 }, 0 },
        { 32, 0xff, 0xff00, 0xff0000, false, 0xff000000, { 0, 1, 2 }, 3 },
        { 32, 0, 0, 0, false, 0, { 2, 1, 0 }, 3 },
        { 24, 0xff0000, 0xff00, 0xff, true, 0, { 2, 1, 0 }, -1 },
        { 16, 0xf800, 0x7e0, 0x1f, true, 0, { 0, 0, 0 }, -1 },
        { 16, 0x7c00, 0x3e0, 0x1f, true, 0, { 0, 0, 0 }, -1 },
};

static int read_masks(struct bmp_state *state, const uint8_t *masks, bool has_alpha, struct why *why) {
        uint32_t red = le32(masks), green = le32(masks + 4), blue = le32(masks + 8);
        uint32_t alpha = has_alpha ? le32(masks + 12) : 0;

        for (size_t i = 0; i < sizeof(LAYOUTS) / sizeof(LAYOUTS[0]); i++)
                if (LAYOUTS[i].bits == state->bits && LAYOUTS[i].red == red && LAYOUTS[i].green == green &&
                    LAYOUTS[i].blue == blue && (LAYOUTS[i].any_alpha || LAYOUTS[i].alpha == alpha)) {
                        memcpy(state->order, LAYOUTS[i].order, sizeof(state->order));
                        state->alpha = LAYOUTS[i].byte_of_alpha;
                        state->green_bits = green == 0x7e0 ? 6 : 5;
                        return 0;
                }
        return why_set(why, -ENOTSUP,
                       "BMP: %u bits a pixel with the masks %08" PRIx32 " %08" PRIx32 " %08" PRIx32 " %08" PRIx32
                       " are not handled",
                       state->bits, red, green, blue, alpha);
}

/* The palette of `n_colors` begins at `bytes`. Pillow takes a palette of black and white for 1 bit a pixel and a grey
 * ramp for 8, whatever the header says. */
static int bmp_read_palette(struct bmp_state *state, const uint8_t *bytes, uint32_t n_colors, unsigned step,
                            struct why *why) {
        bool is_grey = true;
        uint32_t n_other;

        palette_set_grey(&state->palette); /* a grey ramp has all of them, */
        for (uint32_t i = 0; i < n_colors; i++, bytes += step) {
                uint8_t level = (uint8_t)(n_colors == 2 ? i * 255 : i);

                for (unsigned c = 0; c < PIXEL_BYTES; c++) {
                        state->palette.colors[i][c] = bytes[2 - c];
                        is_grey = is_grey && bytes[c] == level;
                }
        }
        if (is_grey && state->bits != (n_colors == 2 ? 1 : 8))
                return why_set(why, -ENOTSUP,
                               "BMP: %u bits a pixel with a grey palette of %" PRIu32 " colours are not handled",
                               state->bits, n_colors);
        n_other = is_grey || n_colors > 256 ? 0 : 256 - n_colors; /* and another one has no more than it has */
        memset(state->palette.colors[256 - n_other], 0, n_other * sizeof(state->palette.colors[0]));
        return 0;
}

static void bmp_read_sizes(struct bmp_state *state, const uint8_t *header, uint32_t n_header, uint32_t *ret_n_colors) {
        if (n_header == OS2_HEADER) {
                state->width = le16(header + 4);
                state->height = le16(header + 6);
                state->bits = le16(header + 10);
                state->compression = PLAIN;
                state->is_top_down = false;
                *ret_n_colors = 0;
        } else {
                state->width = le32(header + 4);
                state->height = le32(header + 8);
                state->is_top_down = header[11] == 0xff; /* a negative height */
                if (state->is_top_down)
                        state->height = -state->height;
                state->bits = le16(header + 14);
                state->compression = le32(header + 16);
                *ret_n_colors = le32(header + 32);
        }
        if (*ret_n_colors == 0 && state->bits <= 8)
                *ret_n_colors = 1u << state->bits;
}

/* Depth and compression, as far as the two numbers say. */
static int bmp_check_kind(const struct bmp_state *state, struct why *why) {
        unsigned bits = state->bits;

        if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
                return why_set(why, -ENOTSUP, "BMP: %u bits a pixel are not handled (1, 4, 8, 16, 24, 32 are)", bits);
        if (state->compression > BITFIELDS)
                return why_set(why, -ENOTSUP, "BMP: compression %" PRIu32 " is not handled (0 to 3 are)",
                               state->compression);
        if ((state->compression == RLE8 && bits != 8) || (state->compression == RLE4 && bits != 4) ||
            (state->compression == BITFIELDS && bits < 16))
                return why_set(why, -ENOTSUP, "BMP: compression %" PRIu32 " with %u bits a pixel is not handled",
                               state->compression, bits);
        return 0;
}

/* Reads what lies between the header and the pixels: masks or a palette. It ends at *ret_end. */
static int bmp_read_tables(struct bmp_state *state, uint32_t n_header, uint32_t n_colors, uint64_t *ret_end,
                           struct why *why) {
        unsigned step = n_header == OS2_HEADER ? 3 : 4;
        uint64_t at = FILE_HEADER + n_header;
        int r = 0;

        memcpy(state->order, (uint8_t[]){ 2, 1, 0 }, sizeof(state->order));
        state->alpha = -1;
        state->green_bits = 5;
        if (state->compression == BITFIELDS && n_header > INFO_HEADER) {
                r = read_masks(state, state->bytes + FILE_HEADER + INFO_HEADER, true, why);
        } else if (state->compression == BITFIELDS) {
                if (state->n_bytes < at + 12)
                        return why_set(why, -EBADMSG, "BMP: the file ends within its header");
                r = read_masks(state, state->bytes + at, false, why);
                at += 12;
        } else if (state->bits <= 8) {
                if (n_colors > 256)
                        return why_set(why, -ENOTSUP, "BMP: a palette of %" PRIu32 " colours is not handled", n_colors);
                if (state->n_bytes < at + (uint64_t)n_colors * step)
                        return why_set(why, -EBADMSG, "BMP: the file ends within its palette");
                r = bmp_read_palette(state, state->bytes + at, n_colors, step, why);
                at += (uint64_t)n_colors * step;
        }
        *ret_end = at;
        return r;
}

static bool is_run_length(const struct bmp_state *state) {
        return state->compression == RLE8 || state->compression == RLE4;
}

static uint64_t bmp_row_bytes(const struct bmp_state *state) {
        return ((uint64_t)state->width * state->bits + 7) / 8;
}

/* Uncompressed pixels must be there up to the last one, wherever the box is. The last row needs no padding. */
static int bmp_check_whole(const struct bmp_state *state, struct why *why) {
        uint64_t n_last = bmp_row_bytes(state), n_there = state->at < state->n_bytes ? state->n_bytes - state->at : 0;

        uint64_t n_most = n_there / 2 * (state->width > 255 ? state->width : 255); /* two bytes: 255 pixels, or a row */

        if (is_run_length(state) && state->at % 2)
                return why_set(why, -ENOTSUP, "BMP: run-length coding from an odd byte on is not handled");
        if (is_run_length(state) && n_most < (uint64_t)state->width * state->height)
                return why_set(why, -EBADMSG, "BMP: the file ends within its pixels");
        if (is_run_length(state))
                return 0;
        if (n_last > n_there || state->height - 1 > (n_there - n_last) / state->stride)
                return why_set(why, -EBADMSG,
                               "BMP: the file has %zu bytes, which are too few for %" PRIu32 " x %" PRIu32
                               " pixels of %u bits from byte %" PRIu64 " on",
                               state->n_bytes, state->width, state->height, state->bits, state->at);
        return 0;
}

static int bmp_open(void *opaque, const uint8_t *bytes, size_t n_bytes, struct image_info *ret_info, struct why *why) {
        struct bmp_state *state = opaque;
        uint32_t n_header = le32(bytes + FILE_HEADER), n_colors;
        uint64_t end = 0;
        int r;

        state->bytes = bytes;
        state->n_bytes = n_bytes;
        if (n_header != OS2_HEADER && n_header != INFO_HEADER && n_header != 64 && n_header != 108 && n_header != 124)
                return why_set(why, -ENOTSUP,
                               "BMP: a header of %" PRIu32 " bytes is not handled (12, 40, 64, 108, 124 are)",
                               n_header);
        if (n_bytes < FILE_HEADER + n_header)
                return why_set(why, -EBADMSG, "BMP: the file ends within its header");

        bmp_read_sizes(state, bytes + FILE_HEADER, n_header, &n_colors);
        if (state->width == 0 || state->height == 0)
                return why_set(why, -EBADMSG, "BMP: the header says %" PRIu32 " x %" PRIu32 " pixels", state->width,
                               state->height);
        r = check_pixels(state->limits, state->width, state->height, why);
        if (r == 0)
                r = bmp_check_kind(state, why);
        if (r == 0)
                r = bmp_read_tables(state, n_header, n_colors, &end, why);
        if (r < 0)
                return r;

        state->at = le32(bytes + 10);
        if (state->at == FILE_HEADER + n_header && state->bits <= 8)
                state->at += 4 * (uint64_t)n_colors; /* some writers forget the palette */
        if (state->at == 0)
                state->at = end;
        state->stride = ((uint64_t)state->width * state->bits + 31) / 32 * 4;
        ret_info->width = state->width;
        ret_info->height = state->height;
        return bmp_check_whole(state, why);
}

/* Alpha is read in place of each of the colours; numbers are looked up in a palette of themselves. */
static int bmp_as(void *opaque, enum decode_as as, struct why *why) {
        struct bmp_state *state = opaque;

        if (as == DECODE_ALPHA) {
                if (state->alpha < 0)
                        return DECODE_OPAQUE;
                memset(state->order, state->alpha, sizeof(state->order));
                return 0;
        }
        if (as == DECODE_WIDE || state->bits > 8)
                return refuse_as(as, state->bits > 8 ? "red, green and blue" : "a palette", why);
        palette_set_grey(&state->palette);
        return 0;
}

/* ---- run-length coding --------------------------------------------------------------------------------------- */

/* The destination of indices, one by one, in the order of the file's rows. */
struct bmp_runs {
        const struct bmp_state *state;
        uint8_t *indices;
        uint64_t n_indices, n_wanted;
        uint64_t at;   /* in the file */
        uint64_t in_x; /* pixels since the last end of a row */
};

static void put_index(struct bmp_runs *runs, uint8_t index) {
        if (runs->n_indices < runs->n_wanted)
                runs->indices[runs->n_indices++] = index;
}

/* Writes `n` pixels of one value, or of two in turn. As in Pillow, a run is cut at the end of the row. */
static void bmp_put_run(struct bmp_runs *runs, unsigned n, uint8_t value) {
        uint64_t left = runs->in_x < runs->state->width ? runs->state->width - runs->in_x : 0;

        if (n > left)
                n = (unsigned)left;
        runs->in_x += n;
        for (unsigned i = 0; i < n; i++)
                if (runs->state->compression == RLE8)
                        put_index(runs, value);
                else
                        put_index(runs, i % 2 ? value & 15 : value >> 4);
}

/* Writes `n` pixels that the file has one by one; then skips padding to an even position in the file. */
static int put_literals(struct bmp_runs *runs, unsigned n, struct why *why) {
        const struct bmp_state *state = runs->state;
        unsigned n_bytes = state->compression == RLE8 ? n : n / 2;

        if (state->compression == RLE4 && n % 2)
                return why_set(why, -ENOTSUP,
                               "BMP: run-length coding with an odd number of single pixels of 4 bits is not handled");
        if (n_bytes > state->n_bytes - runs->at)
                return why_set(why, -EBADMSG, "BMP: the file ends within its pixels");
        for (unsigned i = 0; i < n_bytes; i++) {
                uint8_t byte = state->bytes[runs->at + i];

                if (state->compression == RLE4)
                        put_index(runs, byte >> 4);
                put_index(runs, state->compression == RLE4 ? byte & 15 : byte);
        }
        runs->in_x += n;
        runs->at += n_bytes;
        if (runs->at % 2 && runs->at < state->n_bytes)
                runs->at++;
        return 0;
}

static int bmp_expand(struct bmp_runs *runs, struct why *why) {
        const struct bmp_state *state = runs->state;
        int r = 0;

        while (r == 0 && runs->n_indices < runs->n_wanted) {
                uint8_t n, value;

                if (state->n_bytes < 2 || runs->at > state->n_bytes - 2)
                        return why_set(why, -EBADMSG, "BMP: the file ends within its pixels");
                n = state->bytes[runs->at];
                value = state->bytes[runs->at + 1];
                runs->at += 2;
                if (n > 0) {
                        bmp_put_run(runs, n, value);
                } else if (value == 0) { /* end of the row: the missing pixels are 0 */
                        while (runs->n_indices % state->width != 0)
                                put_index(runs, 0);
                        runs->in_x = 0;
                } else if (value == 1) {
                        return why_set(why, -EBADMSG, "BMP: the pixels end before the picture does");
                } else if (value == 2) {
                        return why_set(why, -ENOTSUP, "BMP: run-length coding with skips (delta) is not handled");
                } else {
                        r = put_literals(runs, value, why);
                }
        }
        return r;
}

/* ---- pixels -------------------------------------------------------------------------------------------------- */

static void convert_16(const struct bmp_state *state, const uint8_t *row, uint32_t width, uint8_t *rgb) {
        unsigned green_max = (1u << state->green_bits) - 1;

        for (uint32_t i = 0; i < width; i++, row += 2, rgb += PIXEL_BYTES) {
                unsigned pixel = le16(row);

                rgb[0] = (uint8_t)((pixel >> (5 + state->green_bits) & 31) * 255 / 31);
                rgb[1] = (uint8_t)((pixel >> 5 & green_max) * 255 / green_max);
                rgb[2] = (uint8_t)((pixel & 31) * 255 / 31);
        }
}

static void bmp_convert_row(const struct bmp_state *state, const uint8_t *row, const struct box *box, uint8_t *rgb) {
        unsigned step = state->bits / 8;

        if (state->bits == 16) {
                convert_16(state, row + (size_t)box->x * 2, box->width, rgb);
        } else if (state->bits > 8) {
                row += (size_t)box->x * step;
                for (uint32_t i = 0; i < box->width; i++, row += step, rgb += PIXEL_BYTES)
                        for (unsigned c = 0; c < PIXEL_BYTES; c++)
                                rgb[c] = row[state->order[c]];
        } else {
                indices_to_rgb(&state->palette, is_run_length(state) ? 8 : state->bits, row, box->x, box->width, rgb);
        }
}

static uint64_t indices_bytes(const struct bmp_state *state) {
        return is_run_length(state) ? (uint64_t)state->width * state->height : 0;
}

static int bmp_read_rows(void *opaque, const struct box *box, const struct row_sink *sink, struct scratch *work,
                         struct why *why) {
        struct bmp_state *state = opaque;
        const uint8_t *pixels = state->bytes + state->at;
        uint64_t stride = state->stride;
        struct row_band band;
        int r;

        r = scratch_reserve(work, indices_bytes(state) + row_band_bytes(box->width), state->limits, why);
        if (r < 0)
                return r;
        if (is_run_length(state)) {
                struct bmp_runs runs = {
                        .state = state,
                        .indices = work->bytes,
                        .n_wanted = indices_bytes(state),
                        .at = state->at,
                };

                r = bmp_expand(&runs, why);
                pixels = work->bytes;
                stride = state->width;
        }
        if (r == 0)
                r = row_band_begin(&band, sink, work->bytes + indices_bytes(state), box->width, why);

        for (uint32_t y = box->y; r == 0 && y < box->y + box->height; y++) {
                uint32_t in_file = state->is_top_down ? y : state->height - 1 - y;

                bmp_convert_row(state, pixels + in_file * stride, box, row_band_next(&band));
                r = row_band_push(&band);
        }
        return r < 0 ? r : row_band_end(&band);
}

static uint64_t bmp_need(const void *opaque, const struct box *box) {
        return indices_bytes(opaque) + row_band_bytes(box->width);
}

const struct picture_format format_bmp = {
        .name = "BMP",
        .probe = bmp_probe,
        .state_new = bmp_state_new,
        .state_free = free,
        .open = bmp_open,
        .read_rows = bmp_read_rows,
        .need = bmp_need,
        .has_plain_rows = true,
        .as = bmp_as,
};
