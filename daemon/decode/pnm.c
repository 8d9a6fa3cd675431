/* decode/pnm.c: PBM, PGM and PPM, as bytes (P4, P5, P6) and as text (P1, P2, P3).
 *
 * Sizes, comments and values are read as Pillow 9.4 reads them: values are scaled to 0 ... 255 with rounding to even,
 * but grey with a maximum above 255 is scaled to 16 bits and then clipped at 255. The text before a comment and the
 * text after it are joined.
 *
 * In the binary forms, positions can be computed, so only the bytes of the box are read. Text is read to its last
 * value, wherever the box lies: a file that was cut must be detected. A text that ends within a value is refused here;
 * Pillow repeats the last value. */
#include "daemon/decode/picture_format.h"
#include "daemon/decode/row_band.h"
#include "daemon/decode/samples.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 10u /* of a number, as in Pillow */

struct pnm_state {
        const struct decode_limits *limits; /* the decoder's */
        const uint8_t *bytes;
        size_t n_bytes;
        size_t at; /* where the pixels begin */
        uint32_t width, height;
        uint32_t max;        /* of a sample; 1 for bits */
        unsigned n_channels; /* 1 or 3 */
        bool is_text;
        bool is_wide;           /* DECODE_WIDE */
        struct palette palette; /* RGB of a sample of up to 255 */
};

static bool pnm_is_blank(uint8_t byte) {
        return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static bool pnm_probe(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' && pnm_is_blank(bytes[2]);
}

static int pnm_state_new(const struct decode_limits *limits, enum decode_jpeg jpeg, void **ret_state) {
        struct pnm_state *state = calloc(1, sizeof(*state));

        if (!state)
                return -ENOMEM;
        state->limits = limits;
        *ret_state = state;
        return 0;
}

/* ---- numbers as text ----------------------------------------------------------------------------------------- */

static size_t after_comment(const struct pnm_state *state, size_t at) {
        while (at < state->n_bytes && state->bytes[at] != '\n' && state->bytes[at] != '\r')
                at++;
        return at < state->n_bytes ? at + 1 : at;
}

/* The next byte that is not in a comment, or -1 at the end. */
static int pnm_next_byte(const struct pnm_state *state, size_t *at) {
        while (*at < state->n_bytes && state->bytes[*at] == '#')
                *at = after_comment(state, *at);
        return *at < state->n_bytes ? state->bytes[(*at)++] : -1;
}

/* Reads a number and one blank after it. */
static int pnm_read_number(const struct pnm_state *state, size_t *at, bool may_end_file, uint64_t *ret_value,
                           struct why *why) {
        unsigned n_digits = 0;
        uint64_t value = 0;
        int byte;

        do
                byte = pnm_next_byte(state, at);
        while (byte >= 0 && pnm_is_blank((uint8_t)byte));

        for (; byte >= '0' && byte <= '9' && n_digits <= DIGITS_MAX; byte = pnm_next_byte(state, at), n_digits++)
                value = value * 10 + (unsigned)(byte - '0');
        if (n_digits > DIGITS_MAX)
                return why_set(why, -EBADMSG, "PNM: a number has more than %u digits", DIGITS_MAX);
        if (byte < 0 && (n_digits == 0 || !may_end_file))
                return why_set(why, -EBADMSG, "PNM: the file ends within its %s", may_end_file ? "pixels" : "header");
        if (byte >= 0 && !pnm_is_blank((uint8_t)byte))
                return why_set(why, -EBADMSG, "PNM: byte %02x where a number is expected", (unsigned)byte);
        *ret_value = value;
        return 0;
}

/* ---- header -------------------------------------------------------------------------------------------------- */

/* value / max of `out_max`, rounded as in Python: a half goes to the even neighbour. */
static unsigned scale(uint32_t value, uint32_t max, unsigned out_max) {
        double scaled = rint((double)value / max * out_max);

        return scaled < out_max ? (unsigned)scaled : out_max;
}

/* One sample -> 0 ... 255. */
static uint8_t pnm_level_of(const struct pnm_state *state, uint32_t value) {
        if (state->max <= 255)
                return state->palette.colors[value][0];
        if (state->n_channels == 3)
                return (uint8_t)scale(value, state->max, 255);
        return clip_grey_16((uint16_t)scale(value, state->max, 65535));
}

static void set_palette(struct pnm_state *state, bool is_bits) {
        if (is_bits) {
                palette_set_levels(&state->palette, 1, true);
                return;
        }
        for (uint32_t i = 0; i < 256 && state->max <= 255; i++)
                memset(state->palette.colors[i], (int)scale(i, state->max, 255), PIXEL_BYTES);
}

static unsigned pnm_sample_bytes(const struct pnm_state *state) {
        return state->max > 255 ? 2 : 1;
}

static bool is_packed_bits(const struct pnm_state *state) {
        return state->max == 1 && state->bytes[1] == '4';
}

static uint64_t pnm_row_bytes(const struct pnm_state *state) {
        if (is_packed_bits(state))
                return ((uint64_t)state->width + 7) / 8;
        return (uint64_t)state->width * state->n_channels * pnm_sample_bytes(state);
}

static int pnm_read_header(struct pnm_state *state, struct why *why) {
        bool is_bits = state->bytes[1] == '1' || state->bytes[1] == '4';
        uint64_t numbers[3] = { 0, 0, 1 };
        int r = 0;

        state->at = 3;
        for (unsigned i = 0; r == 0 && i < (is_bits ? 2 : 3); i++)
                r = pnm_read_number(state, &state->at, false, &numbers[i], why);
        if (r < 0)
                return r;
        if (numbers[0] == 0 || numbers[1] == 0 || numbers[0] > INT32_MAX || numbers[1] > INT32_MAX)
                return why_set(why, -EBADMSG, "PNM: the header says %" PRIu64 " x %" PRIu64 " pixels", numbers[0],
                               numbers[1]);
        if (numbers[2] == 0 || numbers[2] > 65535)
                return why_set(why, -EBADMSG, "PNM: the header says %" PRIu64 " as the largest value (1 to 65535)",
                               numbers[2]);
        state->width = (uint32_t)numbers[0];
        state->height = (uint32_t)numbers[1];
        state->max = (uint32_t)numbers[2];
        state->is_text = state->bytes[1] < '4';
        state->is_wide = false;
        state->n_channels = state->bytes[1] == '3' || state->bytes[1] == '6' ? 3 : 1;
        set_palette(state, is_bits);
        return 0;
}

static int pnm_open(void *opaque, const uint8_t *bytes, size_t n_bytes, struct image_info *ret_info, struct why *why) {
        struct pnm_state *state = opaque;
        int r;

        state->bytes = bytes;
        state->n_bytes = n_bytes;
        r = pnm_read_header(state, why);
        if (r == 0)
                r = check_pixels(state->limits, state->width, state->height, why);
        if (r < 0)
                return r;
        if (!state->is_text && (n_bytes - state->at) / pnm_row_bytes(state) < state->height)
                return why_set(why, -EBADMSG,
                               "PNM: the file has %zu bytes, which are too few for %" PRIu32 " x %" PRIu32
                               " pixels from byte %zu on",
                               n_bytes, state->width, state->height, state->at);
        ret_info->width = state->width;
        ret_info->height = state->height;
        return 0;
}

/* Numbers are the levels that Pillow gives, but bits are 0 and 1 there. */
static int pnm_as(void *opaque, enum decode_as as, struct why *why) {
        struct pnm_state *state = opaque;
        bool is_bits = state->bytes[1] == '1' || state->bytes[1] == '4';

        if (as == DECODE_ALPHA)
                return DECODE_OPAQUE;
        if (state->n_channels != 1 || (as == DECODE_WIDE) != (state->max > 255))
                return refuse_as(as,
                                 state->n_channels != 1 ? "red, green and blue"
                                 : state->max > 255     ? "grey of 16 bits"
                                                        : "grey of at most 8 bits",
                                 why);
        state->is_wide = as == DECODE_WIDE;
        for (unsigned i = 0; i < 2 && is_bits; i++)
                put_level(i == 0, state->palette.colors[i]);
        return 0;
}

/* ---- pixels -------------------------------------------------------------------------------------------------- */

static void put_sample(const struct pnm_state *state, uint32_t value, uint8_t *rgb) {
        if (state->is_wide)
                put_wide((uint16_t)scale(value, state->max, 65535), rgb);
        else if (state->n_channels == 1)
                memset(rgb, pnm_level_of(state, value), PIXEL_BYTES);
        else
                *rgb = pnm_level_of(state, value);
}

static void pnm_convert_row(const struct pnm_state *state, const uint8_t *row, const struct box *box, uint8_t *rgb) {
        unsigned n_sample = pnm_sample_bytes(state), n_channels = state->n_channels;
        size_t n_samples = (size_t)box->width * n_channels;

        if (n_channels == 1 && n_sample == 1) {
                indices_to_rgb(&state->palette, is_packed_bits(state) ? 1 : 8, row, box->x, box->width, rgb);
                return;
        }
        row += (size_t)box->x * n_channels * n_sample;
        if (state->max == 255) {
                memcpy(rgb, row, n_samples);
                return;
        }
        for (size_t i = 0; i < n_samples; i++, row += n_sample, rgb += PIXEL_BYTES / n_channels)
                put_sample(state, n_sample == 2 ? (uint32_t)row[0] << 8 | row[1] : row[0], rgb);
}

static int pnm_read_bytes(const struct pnm_state *state, const struct box *box, struct row_band *band) {
        const uint8_t *row = state->bytes + state->at + box->y * pnm_row_bytes(state);
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < box->height; i++, row += pnm_row_bytes(state)) {
                pnm_convert_row(state, row, box, row_band_next(band));
                r = row_band_push(band);
        }
        return r < 0 ? r : row_band_end(band);
}

/* A bit needs no blank after it. */
static int read_bit(const struct pnm_state *state, size_t *at, uint64_t *ret_value, struct why *why) {
        int byte;

        do
                byte = pnm_next_byte(state, at);
        while (byte >= 0 && pnm_is_blank((uint8_t)byte));

        if (byte < 0)
                return why_set(why, -EBADMSG, "PNM: the file ends within its pixels");
        if (byte != '0' && byte != '1')
                return why_set(why, -EBADMSG, "PNM: byte %02x where a bit is expected", (unsigned)byte);
        *ret_value = (unsigned)(byte - '0');
        return 0;
}

static int read_text_row(const struct pnm_state *state, size_t *at, const struct box *box, uint8_t *rgb,
                         struct why *why) {
        bool is_bits = state->bytes[1] == '1';

        for (uint32_t x = 0; x < state->width; x++)
                for (unsigned c = 0; c < state->n_channels; c++) {
                        uint64_t value;
                        int r = is_bits ? read_bit(state, at, &value, why)
                                        : pnm_read_number(state, at, true, &value, why);

                        if (r == 0 && value > state->max)
                                r = why_set(why, -EBADMSG,
                                            "PNM: the value %" PRIu64 " is larger than the header's %" PRIu32, value,
                                            state->max);
                        if (r < 0)
                                return r;
                        if (rgb && x - box->x < box->width) /* wraps around left of the box */
                                put_sample(state, (uint32_t)value, rgb + (size_t)(x - box->x) * PIXEL_BYTES + c);
                }
        return 0;
}

static int pnm_read_text(const struct pnm_state *state, const struct box *box, struct row_band *band) {
        size_t at = state->at;
        int r = 0;

        for (uint32_t y = 0; r == 0 && y < state->height; y++) {
                bool is_wanted = y >= box->y && y - box->y < box->height;

                r = read_text_row(state, &at, box, is_wanted ? row_band_next(band) : NULL, band->why);
                if (r == 0 && is_wanted)
                        r = row_band_push(band);
        }
        return r < 0 ? r : row_band_end(band);
}

static int pnm_read_rows(void *opaque, const struct box *box, const struct row_sink *sink, struct scratch *work,
                         struct why *why) {
        struct pnm_state *state = opaque;
        struct row_band band;
        int r;

        r = scratch_reserve(work, row_band_bytes(box->width), state->limits, why);
        if (r == 0)
                r = row_band_begin(&band, sink, work->bytes, box->width, why);
        if (r < 0)
                return r;
        return state->is_text ? pnm_read_text(state, box, &band) : pnm_read_bytes(state, box, &band);
}

static uint64_t pnm_need(const void *opaque, const struct box *box) {
        return row_band_bytes(box->width);
}

const struct picture_format format_pnm = {
        .name = "PNM",
        .probe = pnm_probe,
        .state_new = pnm_state_new,
        .state_free = free,
        .open = pnm_open,
        .read_rows = pnm_read_rows,
        .need = pnm_need,
        .has_plain_rows = true,
        .as = pnm_as,
};
