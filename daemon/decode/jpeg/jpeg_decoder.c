/* decode/jpeg/jpeg_decoder.c: the format JPEG: our own decoder for what it handles, libjpeg-turbo for everything else.
 *
 * libjpeg-turbo is started only when it is needed. It may have to take over half-way; then it begins from the top, and
 * its result counts. */
#include "daemon/decode/jpeg/baseline.h"
#include "daemon/decode/jpeg/libjpeg.h"
#include "daemon/decode/picture_format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* The most memory: rows of our own decoder (95 bytes for each column were measured) and those of libjpeg-turbo if it
 * takes over (124), its piece of the scan and its tables. */
#define BASELINE_BYTES_A_COLUMN 256u
#define BASELINE_BYTES          (128u << 10)

struct jpeg_state {
        const struct decode_limits *limits; /* the decoder's */
        struct baseline *baseline;          /* NULL: libjpeg-turbo does everything */
        struct libjpeg *libjpeg;
        const uint8_t *bytes; /* of the open picture */
        size_t n_bytes;
        uint32_t width, height;
        bool is_baseline; /* our own decoder has the open picture */
        bool handed_over; /* it gave up half-way on the last picture */
};

static bool jpeg_probe(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

static void jpeg_state_free(void *opaque) {
        struct jpeg_state *state = opaque;

        baseline_free(state->baseline);
        libjpeg_free(state->libjpeg);
        free(state);
}

static int jpeg_state_new(const struct decode_limits *limits, enum decode_jpeg jpeg, void **ret_state) {
        struct jpeg_state *state = calloc(1, sizeof(*state));
        int r;

        if (!state)
                return -ENOMEM;
        state->limits = limits;
        r = libjpeg_new(limits, &state->libjpeg);
        /* Without AVX2, our own decoder would be slower than libjpeg-turbo, which has SIMD on every CPU. */
        if (r == 0 && jpeg == DECODE_JPEG_AUTO)
                r = baseline_new(BASELINE_CODE_AVX2, &state->baseline);
        if (r == -ENOTSUP)
                r = 0;
        if (r < 0) {
                jpeg_state_free(state);
                return r;
        }
        *ret_state = state;
        return 0;
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

/* 0, BASELINE_HANDS_OVER, or an error. */
static int open_baseline(struct jpeg_state *state, struct why *why) {
        int r;

        if (!state->baseline)
                return BASELINE_HANDS_OVER;
        r = baseline_open(state->baseline, state->bytes, state->n_bytes, &state->width, &state->height);
        if (r < 0)
                return why_errno(why, r, "JPEG");
        if (r == 0)
                r = check_pixels(state->limits, state->width, state->height, why);
        return r;
}

static int jpeg_open(void *opaque, const uint8_t *bytes, size_t n_bytes, struct image_info *ret_info, struct why *why) {
        struct jpeg_state *state = opaque;
        int r;

        state->bytes = bytes;
        state->n_bytes = n_bytes;
        r = open_baseline(state, why);
        state->is_baseline = r == 0;
        if (r == BASELINE_HANDS_OVER)
                r = libjpeg_open(state->libjpeg, bytes, n_bytes, &state->width, &state->height, why);
        if (r < 0)
                return r;

        ret_info->width = state->width;
        ret_info->height = state->height;
        return 0;
}

static bool jpeg_is_grey(const void *opaque) {
        const struct jpeg_state *state = opaque;

        return state->is_baseline ? baseline_is_grey(state->baseline) : libjpeg_is_grey(state->libjpeg);
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

static int jpeg_decoder_take_over(struct jpeg_state *state, struct why *why) {
        bool was_grey = baseline_is_grey(state->baseline);
        uint32_t width, height;
        int r = libjpeg_open(state->libjpeg, state->bytes, state->n_bytes, &width, &height, why);

        if (r == 0 && (width != state->width || height != state->height)) /* the caller's box fits the other size */
                r = why_set(why, -EBADMSG, "JPEG: two headers, %" PRIu32 " x %" PRIu32 " and %" PRIu32 " x %" PRIu32,
                            state->width, state->height, width, height);
        else if (r == 0 && was_grey && !libjpeg_is_grey(state->libjpeg)) /* grey was promised */
                r = why_set(why, -EBADMSG, "JPEG: two headers, of grey and of colours");
        return r;
}

static int jpeg_read_rows(void *opaque, const struct box *box, const struct row_sink *sink, struct scratch *work,
                          struct why *why) {
        struct jpeg_state *state = opaque;
        int r;

        state->handed_over = false;
        if (state->is_baseline) {
                why_set(why, 0, "%s", "");
                r = baseline_read(state->baseline, box, sink, why);
                if (r == -ENOMEM && why && !why->text[0])
                        why_errno(why, r, "JPEG");
                if (r != BASELINE_HANDS_OVER)
                        return r;
                state->is_baseline = false;
                state->handed_over = true;
                r = jpeg_decoder_take_over(state, why);
                if (r < 0)
                        return r;
        }
        return libjpeg_read(state->libjpeg, box, sink, work, why);
}

/* ---- accounting ---------------------------------------------------------------------------------------------- */

static uint64_t jpeg_need(const void *opaque, const struct box *box) {
        const struct jpeg_state *state = opaque;

        (void)box; /* rows are not kept: only the width counts */
        if (state->is_baseline)
                return BASELINE_BYTES + (uint64_t)state->width * BASELINE_BYTES_A_COLUMN;
        return libjpeg_need(state->libjpeg);
}

static size_t jpeg_bytes(const void *opaque) {
        const struct jpeg_state *state = opaque;

        return state->baseline ? baseline_bytes(state->baseline) : 0;
}

static void jpeg_trim(void *opaque) {
        struct jpeg_state *state = opaque;

        if (state->baseline)
                baseline_trim(state->baseline);
}

static enum decoded_by jpeg_decoded_by(const void *opaque, bool *ret_handed_over) {
        const struct jpeg_state *state = opaque;

        *ret_handed_over = state->handed_over;
        return state->is_baseline ? DECODED_BY_BASELINE : DECODED_BY_LIBJPEG;
}

const struct picture_format format_jpeg = {
        .name = "JPEG",
        .probe = jpeg_probe,
        .state_new = jpeg_state_new,
        .state_free = jpeg_state_free,
        .open = jpeg_open,
        .read_rows = jpeg_read_rows,
        .is_grey = jpeg_is_grey,
        .need = jpeg_need,
        .bytes = jpeg_bytes,
        .trim = jpeg_trim,
        .decoded_by = jpeg_decoded_by,
};
