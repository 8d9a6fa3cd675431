/* decode/pil.c: pixels as mosaicml-streaming and LitData store a picture that Pillow made in memory: width, height and the
 * length of the mode's name, 4 bytes each, little-endian; the name; and what tobytes() gives.
 *
 * There are no first bytes to know them by, so the lengths have to fit to the byte. Modes: 1, L, LA, P, RGB, RGBA,
 * RGBX, CMYK and I;16. The palette of a P is not stored, so it has indices, but no colours. */
#include "daemon/decode/picture_format.h"
#include "daemon/decode/row_band.h"
#include "daemon/decode/samples.h"

#include "daemon/base/little_endian.h"
#include "proto/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES 12u

struct pil_mode {
        const char *name;
        unsigned bits; /* of a pixel */
        enum {
                LEVELS,
                WIDE,
                COLORS,
                INK
        } kind;
        unsigned idx_alpha; /* the byte of a pixel that is alpha; 0: opaque */
};

static const struct pil_mode MODES[] = {
        { "1", 1, LEVELS, 0 },     { "L", 8, LEVELS, 0 },    { "P", 8, LEVELS, 0 },
        { "LA", 16, LEVELS, 1 },   { "RGB", 24, COLORS, 0 }, { "RGBA", 32, COLORS, 3 },
        { "RGBX", 32, COLORS, 0 }, { "CMYK", 32, INK, 0 },   { "I;16", 16, WIDE, 0 },
};

struct pil_state {
        const struct decode_limits *limits; /* the decoder's */
        const struct pil_mode *mode;
        const uint8_t *pixels;
        uint32_t width, height;
        enum decode_as as;
        struct palette palette; /* of one bit or one byte */
};

static uint64_t pil_row_bytes(const struct pil_mode *mode, uint32_t width) {
        return ((uint64_t)width * mode->bits + 7) / 8;
}

/* The mode if all of it fits, else NULL. */
static const struct pil_mode *find_mode(const uint8_t *bytes, size_t n_bytes) {
        uint32_t width, height, n_name;

        if (n_bytes < HEADER_BYTES)
                return NULL;
        width = le32(bytes);
        height = le32(bytes + 4);
        n_name = le32(bytes + 8);
        for (size_t i = 0; i < ARRAY_SIZE(MODES) && width > 0 && height > 0; i++) {
                const struct pil_mode *mode = &MODES[i];
                size_t n_left = n_bytes - HEADER_BYTES;

                if (strlen(mode->name) == n_name && n_left > n_name &&
                    memcmp(bytes + HEADER_BYTES, mode->name, n_name) == 0 && (n_left - n_name) % height == 0 &&
                    (n_left - n_name) / height == pil_row_bytes(mode, width))
                        return mode;
        }
        return NULL;
}

static bool pil_probe(const uint8_t *bytes, size_t n_bytes) {
        return find_mode(bytes, n_bytes) != NULL;
}

static int pil_state_new(const struct decode_limits *limits, enum decode_jpeg jpeg, void **ret_state) {
        struct pil_state *state = calloc(1, sizeof(*state));

        (void)jpeg;
        if (!state)
                return -ENOMEM;
        state->limits = limits;
        *ret_state = state;
        return 0;
}

static int pil_open(void *opaque, const uint8_t *bytes, size_t n_bytes, struct image_info *ret_info, struct why *why) {
        struct pil_state *state = opaque;
        int r;

        state->mode = find_mode(bytes, n_bytes);
        state->width = le32(bytes);
        state->height = le32(bytes + 4);
        state->pixels = bytes + HEADER_BYTES + strlen(state->mode->name);
        state->as = DECODE_COLORS;
        r = check_pixels(state->limits, state->width, state->height, why);
        if (r < 0)
                return r;
        palette_set_levels(&state->palette, state->mode->bits == 1 ? 1 : 8, false);
        ret_info->width = state->width;
        ret_info->height = state->height;
        return 0;
}

static int pil_as(void *opaque, enum decode_as as, struct why *why) {
        static const char *const HAVE[] = { [LEVELS] = "grey of at most 8 bits",
                                            [WIDE] = "grey of 16 bits",
                                            [COLORS] = "red, green and blue",
                                            [INK] = "inks" };
        struct pil_state *state = opaque;
        const struct pil_mode *mode = state->mode;

        if (as == DECODE_ALPHA && mode->idx_alpha == 0)
                return DECODE_OPAQUE;
        if ((as == DECODE_WIDE && mode->kind != WIDE) || (as == DECODE_NUMBERS && mode->kind != LEVELS))
                return refuse_as(as, HAVE[mode->kind], why);
        state->as = as;
        for (unsigned i = 0; i < 2 && as == DECODE_NUMBERS && mode->bits == 1; i++)
                put_level((uint8_t)i, state->palette.colors[i]);
        return 0;
}

static void pil_convert_row(const struct pil_state *state, const uint8_t *row, const struct box *box, uint8_t *rgb) {
        const struct pil_mode *mode = state->mode;
        unsigned step = mode->bits / 8;

        if (mode->bits <= 8) {
                indices_to_rgb(&state->palette, mode->bits, row, box->x, box->width, rgb);
                return;
        }
        row += (size_t)box->x * step;
        if (mode->kind == INK) {
                cmyk_ink_to_rgb(row, step, box->width, rgb);
                return;
        }
        for (uint32_t i = 0; i < box->width; i++, row += step, rgb += PIXEL_BYTES) {
                if (state->as == DECODE_ALPHA)
                        put_level(row[mode->idx_alpha], rgb);
                else if (mode->kind == LEVELS)
                        put_level(row[0], rgb);
                else if (mode->kind == COLORS)
                        memcpy(rgb, row, PIXEL_BYTES);
                else if (state->as == DECODE_WIDE)
                        put_wide(le16(row), rgb);
                else
                        put_level(clip_grey_16(le16(row)), rgb);
        }
}

static int pil_read_rows(void *opaque, const struct box *box, const struct row_sink *sink, struct scratch *work,
                         struct why *why) {
        struct pil_state *state = opaque;
        const uint8_t *row = state->pixels + box->y * pil_row_bytes(state->mode, state->width);
        struct row_band band;
        int r;

        if (state->as != DECODE_NUMBERS && strcmp(state->mode->name, "P") == 0)
                return why_set(
                        why, -ENOTSUP,
                        "the picture has indices of a palette that was not stored; decode(mode=P) delivers them");
        r = scratch_reserve(work, row_band_bytes(box->width), state->limits, why);
        if (r == 0)
                r = row_band_begin(&band, sink, work->bytes, box->width, why);
        for (uint32_t i = 0; r == 0 && i < box->height; i++, row += pil_row_bytes(state->mode, state->width)) {
                pil_convert_row(state, row, box, row_band_next(&band));
                r = row_band_push(&band);
        }
        return r < 0 ? r : row_band_end(&band);
}

static uint64_t pil_need(const void *opaque, const struct box *box) {
        (void)opaque;
        return row_band_bytes(box->width);
}

const struct picture_format format_pil = {
        .name = "PIL",
        .probe = pil_probe,
        .state_new = pil_state_new,
        .state_free = free,
        .open = pil_open,
        .read_rows = pil_read_rows,
        .need = pil_need,
        .has_plain_rows = true,
        .as = pil_as,
};
