/* decode/png.c: PNG through libspng.
 *
 * The library undoes the compression and the filters; samples are interpreted here, row by row, as in Pillow: 16-bit
 * grey is cut at 255 (Pillow keeps it as a picture of 16 or 32 bits), 16-bit colour loses its low bytes. Alpha and tRNS
 * are not part of the colours, and read on their own if they are asked for. 8-bit RGB is handed out as it is.
 *
 * Rows come from the top: those above the box are decompressed and discarded, those below are not read. If the file's
 * end is missing, all rows are read, because a file that was cut is refused wherever the box lies.
 *
 * Pillow ignores the checksum (CRC) of a chunk of pixels, but not the one (Adler) of the data inside it. libspng checks
 * both or none. So if a picture fails because of a CRC, it is read a second time, from a copy with correct CRCs. */
#include "daemon/decode/picture_format.h"
#include "daemon/decode/samples.h"

#include "proto/base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spng.h>

#define CHUNK_MAX  (8u << 20)  /* bytes of one chunk that libspng keeps: colour profiles, texts */
#define CHUNKS_MAX (16u << 20) /* of all of them */
#define BAND_ROWS  8u          /* rows at once */

struct png_state {
        const struct decode_limits *limits; /* the decoder's */
        const uint8_t *bytes;               /* of the open picture's file */
        size_t n_bytes;
        bool is_whole;     /* its end is there */
        enum decode_as as; /* decoder_as() */
        size_t n_row;      /* bytes of a row as the file has it */
        spng_ctx *spng;    /* of the open picture */
        uint8_t *repaired; /* copy of the file with correct checksums; rarely needed */
        struct spng_ihdr header;
        uint8_t palette[256][PIXEL_BYTES];
        struct spng_trns transparent; /* tRNS, where DECODE_ALPHA needs it; */
        uint8_t alphas[256];          /* with a palette, that of each index */
};

typedef void row_converter(const struct png_state *state, const uint8_t *row, uint8_t *rgb, uint32_t width);

static bool png_probe(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static void png_end_picture(struct png_state *state) {
        spng_ctx_free(state->spng); /* takes NULL */
        state->spng = NULL;
        free(state->repaired);
        state->repaired = NULL;
}

static void png_state_free(void *opaque) {
        png_end_picture(opaque);
        free(opaque);
}

static int png_state_new(const struct decode_limits *limits, enum decode_jpeg jpeg, void **ret_state) {
        struct png_state *state = calloc(1, sizeof(*state));

        (void)jpeg;
        if (!state)
                return -ENOMEM;
        state->limits = limits;
        *ret_state = state;
        return 0;
}

/* Was memory refused since the picture was begun? libspng gives zlib its own functions, and tells what zlib makes of a
 * refusal as damage of the file. They have no argument of ours, so it is noted for the thread. */
static _Thread_local bool was_refused;

static void *png_noted(void *memory) {
        was_refused |= !memory;
        return memory;
}

static void *noted_malloc(size_t n_bytes) {
        return png_noted(malloc(n_bytes));
}

static void *noted_realloc(void *memory, size_t n_bytes) {
        return png_noted(realloc(memory, n_bytes));
}

static void *noted_calloc(size_t n, size_t n_bytes) {
        return png_noted(calloc(n, n_bytes));
}

static int png_fail(struct png_state *state, int spng_error, struct why *why) {
        png_end_picture(state);
        if (spng_error == SPNG_EMEM || was_refused)
                return why_set(why, -ENOMEM, "PNG: no memory");
        return why_set(why, -EBADMSG, "PNG: %s", spng_strerror(spng_error));
}

/* ---- header -------------------------------------------------------------------------------------------------- */

/* Entries that the file does not have are black, as from Pillow 10.1 on. */
static int png_read_palette(struct png_state *state) {
        struct spng_plte palette;
        int r;

        memset(state->palette, 0, sizeof(state->palette));
        r = spng_get_plte(state->spng, &palette); /* reads all chunks before the pixels, palette or not */
        if (r == SPNG_ECHUNKAVAIL)
                return 0;
        if (r)
                return r;
        for (uint32_t i = 0; i < palette.n_entries && i < 256; i++) {
                state->palette[i][0] = palette.entries[i].red;
                state->palette[i][1] = palette.entries[i].green;
                state->palette[i][2] = palette.entries[i].blue;
        }
        return 0;
}

static uint32_t png_be32(const uint8_t *bytes) {
        return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* The first chunk `name`, or `last` if it comes before; NULL: neither is there. A chunk is its length, its name, its
 * content, and a checksum. */
static const uint8_t *find_chunk(const uint8_t *bytes, size_t n_bytes, const char *name, const char *last) {
        size_t at = 8;

        while (n_bytes - at >= 12) {
                size_t n_content = png_be32(bytes + at);

                if (memcmp(bytes + at + 4, name, 4) == 0 || memcmp(bytes + at + 4, last, 4) == 0)
                        return bytes + at;
                if (n_content > n_bytes - at - 12)
                        return NULL;
                at += n_content + 12;
        }
        return NULL;
}

static bool png_has_end(const uint8_t *bytes, size_t n_bytes) {
        return find_chunk(bytes, n_bytes, "IEND", "IEND");
}

/* Makes a libspng context and reads the header into the state. Returns 0 or libspng's error. */
static int png_begin(struct png_state *state, const uint8_t *bytes, size_t n_bytes) {
        struct spng_alloc memory = { noted_malloc, noted_realloc, noted_calloc, free };
        int r;

        spng_ctx_free(state->spng);
        was_refused = false;
        state->spng = spng_ctx_new2(&memory, 0);
        if (!state->spng)
                return SPNG_EMEM;

        spng_set_chunk_limits(state->spng, CHUNK_MAX, CHUNKS_MAX);
        spng_set_crc_action(state->spng, SPNG_CRC_ERROR, SPNG_CRC_ERROR);
        r = spng_set_png_buffer(state->spng, bytes, n_bytes);
        if (r)
                return r;
        return spng_get_ihdr(state->spng, &state->header);
}

static int png_open(void *opaque, const uint8_t *bytes, size_t n_bytes, struct image_info *ret_info, struct why *why) {
        struct png_state *state = opaque;
        size_t n_image;
        int r;

        png_end_picture(state);
        state->bytes = bytes;
        state->n_bytes = n_bytes;
        state->as = DECODE_COLORS;
        r = png_begin(state, bytes, n_bytes);
        if (r)
                return png_fail(state, r, why);

        r = check_pixels(state->limits, state->header.width, state->header.height, why);
        if (r < 0) {
                png_end_picture(state);
                return r;
        }
        r = png_read_palette(state);
        if (r)
                return png_fail(state, r, why);
        r = spng_decoded_image_size(state->spng, SPNG_FMT_RAW, &n_image);
        if (r)
                return png_fail(state, r, why);
        state->n_row = n_image / state->header.height;
        state->is_whole = png_has_end(bytes, n_bytes);

        ret_info->width = state->header.width;
        ret_info->height = state->header.height;
        return 0;
}

/* ---- wrong checksums ----------------------------------------------------------------------------------------- */

static void put_be32(uint8_t *bytes, uint32_t value) {
        for (unsigned i = 0; i < 4; i++)
                bytes[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* CRC-32 as in the PNG specification, bit by bit: it runs only for damaged files. */
static uint32_t crc_of(const uint8_t *bytes, size_t n_bytes) {
        uint32_t crc = 0xffffffffu;

        for (size_t i = 0; i < n_bytes; i++) {
                crc ^= bytes[i];
                for (unsigned bit = 0; bit < 8; bit++)
                        crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
        return ~crc;
}

/* Starts again with a copy of the file whose IDAT chunks have correct checksums. 0 or libspng's error. */
static int begin_repaired(struct png_state *state) {
        size_t at = 8;
        int r;

        state->repaired = malloc(state->n_bytes);
        if (!state->repaired)
                return SPNG_EMEM;
        memcpy(state->repaired, state->bytes, state->n_bytes);

        while (state->n_bytes - at >= 12) { /* length, name, content, checksum */
                uint8_t *chunk = state->repaired + at;
                size_t n_content = png_be32(chunk);

                if (n_content > state->n_bytes - at - 12)
                        break;
                if (memcmp(chunk + 4, "IDAT", 4) == 0)
                        put_be32(chunk + 8 + n_content, crc_of(chunk + 4, n_content + 4));
                at += n_content + 12;
        }

        r = png_begin(state, state->repaired, state->n_bytes);
        return r ? r : png_read_palette(state);
}

/* ---- one row of samples, as the file has them (16 bits: big-endian) -> RGB ----------------------------------- */

/* Sample x of a row with 1, 2, 4 or 8 bits a sample, the first one in the highest bits. */
static unsigned png_sample_at(const uint8_t *row, uint32_t x, unsigned depth) {
        unsigned n_per_byte = 8 / depth;
        unsigned shift = (n_per_byte - 1 - x % n_per_byte) * depth;

        return (unsigned)row[x / n_per_byte] >> shift & ((1u << depth) - 1);
}

static void convert_grey(const struct png_state *state, const uint8_t *row, uint8_t *rgb, uint32_t width) {
        unsigned depth = state->header.bit_depth;
        unsigned scale = 255 / ((1u << depth) - 1);

        for (uint32_t x = 0; x < width; x++)
                memset(rgb + (size_t)x * PIXEL_BYTES, (int)(png_sample_at(row, x, depth) * scale), PIXEL_BYTES);
}

static void convert_grey_16(const struct png_state *state, const uint8_t *row, uint8_t *rgb, uint32_t width) {
        (void)state;
        for (uint32_t x = 0; x < width; x++)
                memset(rgb + (size_t)x * PIXEL_BYTES, row[2 * x] ? 255 : row[2 * x + 1], PIXEL_BYTES);
}

static void convert_palette(const struct png_state *state, const uint8_t *row, uint8_t *rgb, uint32_t width) {
        for (uint32_t x = 0; x < width; x++)
                memcpy(rgb + (size_t)x * PIXEL_BYTES, state->palette[png_sample_at(row, x, state->header.bit_depth)],
                       PIXEL_BYTES);
}

/* Grey with alpha; a sample has `step` bytes, the high one first. */
static void convert_grey_alpha(const struct png_state *state, const uint8_t *row, uint8_t *rgb, uint32_t width) {
        size_t step = state->header.bit_depth / 8;

        for (uint32_t x = 0; x < width; x++)
                memset(rgb + (size_t)x * PIXEL_BYTES, row[2 * step * x], PIXEL_BYTES);
}

static void convert_colour(const struct png_state *state, const uint8_t *row, uint8_t *rgb, uint32_t width) {
        size_t step = state->header.bit_depth / 8;
        size_t n_channels = state->header.color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA ? 4 : 3;

        for (uint32_t x = 0; x < width; x++, row += n_channels * step, rgb += PIXEL_BYTES) {
                rgb[0] = row[0];
                rgb[1] = row[step];
                rgb[2] = row[2 * step];
        }
}

/* As Pillow's "1", "L" and "P": grey of 2 and 4 bits is scaled, the others are not. */
static void convert_numbers(const struct png_state *state, const uint8_t *row, uint8_t *rgb, uint32_t width) {
        unsigned depth = state->header.bit_depth;
        bool is_scaled = state->header.color_type == SPNG_COLOR_TYPE_GRAYSCALE && depth > 1;
        unsigned scale = is_scaled ? 255 / ((1u << depth) - 1) : 1;

        for (uint32_t x = 0; x < width; x++)
                memset(rgb + (size_t)x * PIXEL_BYTES, (int)(png_sample_at(row, x, depth) * scale), PIXEL_BYTES);
}

/* The high bytes of the channel that is alpha. */
static void convert_alpha(const struct png_state *state, const uint8_t *row, uint8_t *rgb, uint32_t width) {
        size_t step = state->header.bit_depth / 8;
        size_t n_channels = state->header.color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA ? 4 : 2;

        for (uint32_t x = 0; x < width; x++)
                put_level(row[((x + (size_t)1) * n_channels - 1) * step], rgb + (size_t)x * PIXEL_BYTES);
}

static void convert_palette_alpha(const struct png_state *state, const uint8_t *row, uint8_t *rgb, uint32_t width) {
        for (uint32_t x = 0; x < width; x++)
                put_level(state->alphas[png_sample_at(row, x, state->header.bit_depth)], rgb + (size_t)x * PIXEL_BYTES);
}

/* The one grey, or colour, of tRNS is transparent. 8 bits a sample, or one bit. */
static void convert_key_alpha(const struct png_state *state, const uint8_t *row, uint8_t *rgb, uint32_t width) {
        const struct spng_trns *key = &state->transparent;

        for (uint32_t x = 0; x < width; x++) {
                bool is_key;

                if (state->header.color_type == SPNG_COLOR_TYPE_GRAYSCALE)
                        is_key = png_sample_at(row, x, state->header.bit_depth) == key->gray;
                else
                        is_key = row[3 * (size_t)x] == key->red && row[3 * (size_t)x + 1] == key->green &&
                                 row[3 * (size_t)x + 2] == key->blue;

                put_level(is_key ? 0 : 255, rgb + (size_t)x * PIXEL_BYTES);
        }
}

static void convert_wide(const struct png_state *state, const uint8_t *row, uint8_t *rgb, uint32_t width) {
        (void)state;
        for (uint32_t x = 0; x < width; x++)
                put_wide((uint16_t)(row[2 * x] << 8 | row[2 * x + 1]), rgb + (size_t)x * PIXEL_BYTES);
}

static bool has_alpha(const struct spng_ihdr *header) {
        return header->color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA ||
               header->color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
}

/* An index that tRNS does not name is opaque. It may name more than the palette has; libspng then passes over it, and
 * Pillow does not. */
static int read_alphas(struct png_state *state, struct why *why) {
        const uint8_t *chunk = find_chunk(state->bytes, state->n_bytes, "tRNS", "IDAT");
        size_t n = chunk && memcmp(chunk + 4, "tRNS", 4) == 0 ? png_be32(chunk) : 0;

        if (n == 0)
                return DECODE_OPAQUE;
        if (n > sizeof(state->alphas))
                return why_set(why, -EBADMSG, "PNG: tRNS has %zu entries, a palette has at most %zu", n,
                               sizeof(state->alphas));
        if (n > state->n_bytes - (size_t)(chunk - state->bytes) - 12)
                return why_set(why, -EBADMSG, "PNG: the file ends within tRNS");
        memset(state->alphas, 255, sizeof(state->alphas));
        memcpy(state->alphas, chunk + 8, n);
        return 0;
}

/* Pillow compares the key with samples that it has scaled (2 and 4 bits) or cut (16 bits): another meaning than PNG's.
 */
static int png_as_alpha(struct png_state *state, struct why *why) {
        unsigned depth = state->header.bit_depth;

        if (has_alpha(&state->header))
                return 0;
        if (state->header.color_type == SPNG_COLOR_TYPE_INDEXED)
                return read_alphas(state, why);
        if (spng_get_trns(state->spng, &state->transparent))
                return DECODE_OPAQUE;
        if (depth != 8 && depth != 1)
                return why_set(why, -ENOTSUP, "PNG: a transparent colour (tRNS) in a picture of %u bits is not handled",
                               depth);
        return 0;
}

static int png_as(void *opaque, enum decode_as as, struct why *why) {
        static const char *const KINDS[] = { [SPNG_COLOR_TYPE_GRAYSCALE] = "grey",
                                             [SPNG_COLOR_TYPE_TRUECOLOR] = "red, green and blue",
                                             [SPNG_COLOR_TYPE_INDEXED] = "a palette",
                                             [SPNG_COLOR_TYPE_GRAYSCALE_ALPHA] = "grey and alpha",
                                             [SPNG_COLOR_TYPE_TRUECOLOR_ALPHA] = "red, green, blue and alpha" };
        struct png_state *state = opaque;
        unsigned type = state->header.color_type, depth = state->header.bit_depth;
        bool is_grey = type == SPNG_COLOR_TYPE_GRAYSCALE;
        char what[48];
        int r = 0;

        if (as == DECODE_ALPHA)
                r = png_as_alpha(state, why);
        else if (as == DECODE_WIDE ? !is_grey || depth != 16
                                   : (!is_grey && type != SPNG_COLOR_TYPE_INDEXED) || depth > 8) {
                snprintf(what, sizeof(what), "%s of %u bits", KINDS[type], depth);
                r = refuse_as(as, what, why);
        }
        if (r == 0)
                state->as = as;
        return r;
}

static row_converter *find_alpha_converter(const struct spng_ihdr *header) {
        if (has_alpha(header))
                return convert_alpha;
        return header->color_type == SPNG_COLOR_TYPE_INDEXED ? convert_palette_alpha : convert_key_alpha;
}

/* NULL: the samples are RGB already. */
static row_converter *find_converter(const struct png_state *state) {
        const struct spng_ihdr *header = &state->header;

        if (state->as == DECODE_NUMBERS)
                return convert_numbers;
        if (state->as == DECODE_WIDE)
                return convert_wide;
        if (state->as == DECODE_ALPHA)
                return find_alpha_converter(header);
        switch (header->color_type) {
        case SPNG_COLOR_TYPE_GRAYSCALE:
                return header->bit_depth == 16 ? convert_grey_16 : convert_grey;
        case SPNG_COLOR_TYPE_INDEXED:
                return convert_palette;
        case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
                return convert_grey_alpha;
        case SPNG_COLOR_TYPE_TRUECOLOR:
                return header->bit_depth == 8 ? NULL : convert_colour;
        default:
                return convert_colour;
        }
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

/* What a read works on. */
struct reading {
        const struct box *box;
        const struct row_sink *sink;
        struct why *why;
        uint8_t *raw;           /* one such row, or all of an interlaced picture */
        uint8_t *band;          /* BAND_ROWS rows of RGB */
        row_converter *convert; /* NULL: none is needed */
        uint32_t n_band;        /* rows that wait in the band */
        int sink_error;         /* negative errno */
};

static bool flush_band(const struct png_state *state, struct reading *reading) {
        struct view view = {
                .pixels = reading->band + (size_t)reading->box->x * PIXEL_BYTES,
                .stride = (size_t)state->header.width * PIXEL_BYTES,
                .width = reading->box->width,
                .height = reading->n_band,
        };

        reading->n_band = 0;
        reading->sink_error = reading->sink->take(reading->sink->userdata, &view, reading->why);
        return reading->sink_error == 0;
}

/* Where row y has to be decompressed to. */
static uint8_t *png_place_of(const struct png_state *state, const struct reading *reading) {
        if (reading->convert)
                return reading->raw;
        return reading->band + reading->n_band * ((size_t)state->header.width * PIXEL_BYTES);
}

/* Row y of the file lies at `raw`. Returns false if the sink wants no more. */
static bool png_take_row(const struct png_state *state, struct reading *reading, uint32_t y, const uint8_t *raw) {
        uint32_t end = reading->box->y + reading->box->height;
        uint8_t *rgb = reading->band + reading->n_band * ((size_t)state->header.width * PIXEL_BYTES);

        if (y < reading->box->y || y >= end)
                return true;
        if (reading->convert)
                reading->convert(state, raw, rgb, state->header.width);
        else if (raw != rgb)
                memcpy(rgb, raw, state->n_row);
        reading->n_band++;
        return (reading->n_band < BAND_ROWS && y + 1 < end) || flush_band(state, reading);
}

/* Both return 0 or an error of libspng; an error of the sink takes precedence. */

/* The rows of an interlaced picture are complete only at the end. */
static int png_read_interlaced(struct png_state *state, struct reading *reading) {
        uint32_t end = reading->box->y + reading->box->height;
        size_t n_bytes = state->n_row * state->header.height;
        int r;

        if (state->header.bit_depth < 8)
                memset(reading->raw, 0, n_bytes); /* the library ORs samples into the bytes that they share */
        r = spng_decode_image(state->spng, reading->raw, n_bytes, SPNG_FMT_RAW, 0);
        for (uint32_t y = reading->box->y; r == 0 && y < end; y++)
                if (!png_take_row(state, reading, y, reading->raw + state->n_row * y))
                        break;
        return r;
}

static int read_sequential(struct png_state *state, struct reading *reading) {
        uint32_t end = state->is_whole ? reading->box->y + reading->box->height : state->header.height;
        int r;

        r = spng_decode_image(state->spng, NULL, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE);
        for (uint32_t y = 0; r == 0 && y < end; y++) {
                uint8_t *raw = png_place_of(state, reading);

                r = spng_decode_row(state->spng, raw, state->n_row);
                if (r == SPNG_EOI) /* comes with the last row */
                        r = 0;
                if (r == 0 && !png_take_row(state, reading, y, raw))
                        break;
        }
        return r;
}

static int png_read_once(struct png_state *state, struct reading *reading) {
        reading->n_band = 0;
        reading->sink_error = reading->sink->begin(reading->sink->userdata, reading->why);
        if (reading->sink_error < 0)
                return 0;
        return state->header.interlace_method ? png_read_interlaced(state, reading) : read_sequential(state, reading);
}

/* Memory for the file's samples before they become RGB: one row, or all of an interlaced picture. */
static uint64_t raw_bytes(const struct png_state *state) {
        return state->header.interlace_method ? (uint64_t)state->n_row * state->header.height : state->n_row;
}

static uint64_t png_band_bytes(const struct png_state *state) {
        return (uint64_t)state->header.width * PIXEL_BYTES * BAND_ROWS;
}

static int png_read_rows(void *opaque, const struct box *box, const struct row_sink *sink, struct scratch *work,
                         struct why *why) {
        struct png_state *state = opaque;
        struct reading reading = { .box = box, .sink = sink, .why = why };
        int r;

        r = scratch_reserve(work, raw_bytes(state) + png_band_bytes(state), state->limits, why);
        if (r < 0) {
                png_end_picture(state);
                return r;
        }
        reading.raw = work->bytes;
        reading.band = work->bytes + raw_bytes(state);
        reading.convert = find_converter(state);

        r = png_read_once(state, &reading);
        if (r == SPNG_ECHUNK_CRC) {
                r = begin_repaired(state);
                if (r == 0)
                        r = png_read_once(state, &reading);
        }
        if (r)
                return png_fail(state, r, why);
        png_end_picture(state);
        return reading.sink_error;
}

/* The library's own memory: two rows. A copy with correct checksums is made only of damaged files. */
static uint64_t png_need(const void *opaque, const struct box *box) {
        const struct png_state *state = opaque;

        (void)box;
        return raw_bytes(state) + png_band_bytes(state) + 2 * state->n_row + state->n_bytes;
}

const struct picture_format format_png = {
        .name = "PNG",
        .probe = png_probe,
        .state_new = png_state_new,
        .state_free = png_state_free,
        .open = png_open,
        .read_rows = png_read_rows,
        .need = png_need,
        .as = png_as,
};
