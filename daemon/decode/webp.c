/* decode/webp.c: WebP through libwebp.
 *
 * Pillow reads every WebP as an animation and takes the first frame: a canvas of transparent black, into which the
 * frame is decoded at its place. Alpha is not part of the colours. A still picture is a frame that fills the canvas. So
 * this file parses the container up to the first frame, and libwebp decodes the frame. It leaves out what is outside of
 * the box, as far as it can. */
#include "daemon/base/little_endian.h"
#include "daemon/decode/picture_format.h"
#include "daemon/decode/samples.h"

#include "proto/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>

#define RIFF_HEADER  12u /* "RIFF", size, "WEBP" */
#define CHUNK_HEADER 8u  /* name, size */
#define FRAME_HEADER 16u /* x, y, width, height, duration: 3 bytes each; flags */
#define MARGIN       2u  /* pixels around the box that are decoded too */

struct webp_state {
        const struct decode_limits *limits; /* the decoder's */
        const uint8_t *bytes;               /* of the frame, or of the file if it is a still picture */
        size_t n_bytes;
        uint32_t width, height; /* of the canvas */
        struct box frame;       /* within the canvas */
        bool has_alpha;
        bool as_alpha; /* DECODE_ALPHA */
};

static bool webp_probe(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 16 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBPVP8", 7) == 0;
}

static int webp_state_new(const struct decode_limits *limits, enum decode_jpeg jpeg, void **ret_state) {
        struct webp_state *state = calloc(1, sizeof(*state));

        (void)jpeg;
        if (!state)
                return -ENOMEM;
        state->limits = limits;
        *ret_state = state;
        return 0;
}

/* Finds the first chunk ANMF. `bytes` is the container, whose size has been checked. */
static int webp_find_frame(struct webp_state *state, const uint8_t *bytes, size_t n_bytes, struct why *why) {
        size_t at = RIFF_HEADER;

        while (n_bytes - at >= CHUNK_HEADER) {
                const uint8_t *chunk = bytes + at + CHUNK_HEADER;
                size_t n_chunk = le32(bytes + at + 4);

                if (n_chunk > n_bytes - at - CHUNK_HEADER)
                        break;
                if (memcmp(bytes + at, "ANMF", 4) == 0 && n_chunk > FRAME_HEADER) {
                        state->bytes = chunk + FRAME_HEADER;
                        state->n_bytes = n_chunk - FRAME_HEADER;
                        state->frame.x = le24(chunk) * 2;
                        state->frame.y = le24(chunk + 3) * 2;
                        return 0;
                }
                at += CHUNK_HEADER + n_chunk + (n_chunk & 1);
                if (at > n_bytes)
                        break;
        }
        return why_set(why, -EBADMSG, "WebP: an animation without a whole frame");
}

static int webp_open(void *opaque, const uint8_t *bytes, size_t n_bytes, struct image_info *ret_info, struct why *why) {
        struct webp_state *state = opaque;
        WebPBitstreamFeatures features;
        size_t n_container = (size_t)le32(bytes + 4) + CHUNK_HEADER;
        int r;

        if (n_container > n_bytes)
                return why_set(why, -EBADMSG, "WebP: the file has %zu bytes, its header says %zu", n_bytes,
                               n_container);
        if (WebPGetFeatures(bytes, n_container, &features) != VP8_STATUS_OK || features.width < 1 ||
            features.height < 1)
                return why_set(why, -EBADMSG, "WebP: the header is damaged");

        state->width = (uint32_t)features.width;
        state->height = (uint32_t)features.height;
        state->has_alpha = features.has_alpha;
        state->as_alpha = false;
        r = check_pixels(state->limits, state->width, state->height, why);
        if (r < 0)
                return r;

        state->bytes = bytes;
        state->n_bytes = n_container;
        state->frame = (struct box){};
        if (features.has_animation) {
                r = webp_find_frame(state, bytes, n_container, why);
                if (r < 0)
                        return r;
                if (WebPGetFeatures(state->bytes, state->n_bytes, &features) != VP8_STATUS_OK)
                        return why_set(why, -EBADMSG, "WebP: the first frame's header is damaged");
        }
        state->frame.width = (uint32_t)features.width;
        state->frame.height = (uint32_t)features.height;
        if ((uint64_t)state->frame.x + state->frame.width > state->width ||
            (uint64_t)state->frame.y + state->frame.height > state->height)
                return why_set(why, -EBADMSG, "WebP: the first frame lies outside of the picture");

        ret_info->width = state->width;
        ret_info->height = state->height;
        return 0;
}

static int webp_as(void *opaque, enum decode_as as, struct why *why) {
        struct webp_state *state = opaque;

        if (as != DECODE_ALPHA)
                return refuse_as(as, "red, green and blue", why);
        state->as_alpha = state->has_alpha;
        return state->has_alpha ? 0 : DECODE_OPAQUE;
}

/* Of a pixel, as the library writes it: alpha comes only with the colours. */
static unsigned library_bytes(const struct webp_state *state) {
        return state->as_alpha ? PIXEL_BYTES + 1 : PIXEL_BYTES;
}

/* ---- pixels -------------------------------------------------------------------------------------------------- */

/* The part of the frame that has to be decoded for the box, in the frame's own coordinates; the library needs even
 * corners, and its upsampling reads a neighbour. False: the box lies beside the frame. */
static bool webp_find_part(const struct box *frame, const struct box *box, struct box *ret_part) {
        uint32_t left = box->x > frame->x ? box->x - frame->x : 0;
        uint32_t top = box->y > frame->y ? box->y - frame->y : 0;
        int64_t right = (int64_t)box->x + box->width + MARGIN - frame->x;
        int64_t bottom = (int64_t)box->y + box->height + MARGIN - frame->y;

        if (left >= frame->width || top >= frame->height || right <= MARGIN || bottom <= MARGIN)
                return false;
        left = left > MARGIN ? (left - MARGIN) & ~1u : 0;
        top = top > MARGIN ? (top - MARGIN) & ~1u : 0;
        *ret_part = (struct box){
                .x = left,
                .y = top,
                .width = (right < frame->width ? (uint32_t)right : frame->width) - left,
                .height = (bottom < frame->height ? (uint32_t)bottom : frame->height) - top,
        };
        return true;
}

static int decode_part(const struct webp_state *state, const struct box *part, uint8_t *out, struct why *why) {
        WebPDecoderConfig config;
        VP8StatusCode status;

        if (!WebPInitDecoderConfig(&config))
                return why_set(why, -ENOTSUP, "WebP: the library is of another version than its header");
        config.options.use_cropping = 1;
        config.options.crop_left = (int)part->x;
        config.options.crop_top = (int)part->y;
        config.options.crop_width = (int)part->width;
        config.options.crop_height = (int)part->height;
        config.output.colorspace = state->as_alpha ? MODE_RGBA : MODE_RGB;
        config.output.is_external_memory = 1;
        config.output.u.RGBA.rgba = out;
        config.output.u.RGBA.stride = (int)(part->width * library_bytes(state));
        config.output.u.RGBA.size = (size_t)part->width * library_bytes(state) * part->height;

        status = WebPDecode(state->bytes, state->n_bytes, &config);
        WebPFreeDecBuffer(&config.output);
        if (status == VP8_STATUS_OUT_OF_MEMORY)
                return why_set(why, -ENOMEM, "WebP: no memory");
        if (status != VP8_STATUS_OK)
                return why_set(why, -EBADMSG, "WebP: the data are damaged or cut short");
        for (size_t i = 0; state->as_alpha && i < (size_t)part->width * part->height; i++)
                put_level(out[i * 4 + 3], out + i * PIXEL_BYTES); /* lies before what is still to be read */
        return 0;
}

/* The part of the box that the frame does not cover is black and transparent: copies the frame's part into the box. */
static void paint(uint8_t *out, const struct box *box, const struct box *frame, const struct box *part,
                  const uint8_t *pixels) {
        memset(out, 0, (size_t)box->width * PIXEL_BYTES * box->height);
        for (uint32_t y = 0; y < part->height; y++)
                for (uint32_t x = 0; x < part->width; x++) {
                        uint32_t to_x = frame->x + part->x + x - box->x, to_y = frame->y + part->y + y - box->y;

                        if (to_x < box->width && to_y < box->height) /* wraps around left and above of the box */
                                memcpy(out + ((size_t)to_y * box->width + to_x) * PIXEL_BYTES,
                                       pixels + ((size_t)y * part->width + x) * PIXEL_BYTES, PIXEL_BYTES);
                }
}

static int webp_read_rows(void *opaque, const struct box *box, const struct row_sink *sink, struct scratch *work,
                          struct why *why) {
        struct webp_state *state = opaque;
        const struct box *frame = &state->frame;
        struct box part = {};
        bool overlaps = webp_find_part(frame, box, &part);
        bool covers = frame->x <= box->x && box->x + box->width <= frame->x + frame->width && frame->y <= box->y &&
                      box->y + box->height <= frame->y + frame->height;
        uint64_t n_part = (uint64_t)part.width * library_bytes(state) * part.height;
        uint64_t n_box = covers ? 0 : (uint64_t)box->width * PIXEL_BYTES * box->height;
        struct view view = { .width = box->width, .height = box->height };
        int r;

        r = scratch_reserve(work, n_part + n_box, state->limits, why);
        if (r == 0 && overlaps)
                r = decode_part(state, &part, work->bytes, why);
        if (r < 0)
                return r;

        if (covers) {
                view.stride = (size_t)part.width * PIXEL_BYTES;
                view.pixels = work->bytes + (box->y - frame->y - part.y) * view.stride +
                              (size_t)(box->x - frame->x - part.x) * PIXEL_BYTES;
        } else {
                view.stride = (size_t)box->width * PIXEL_BYTES;
                view.pixels = work->bytes + n_part;
                paint(work->bytes + n_part, box, frame, &part, work->bytes);
        }
        r = sink->begin(sink->userdata, why);
        return r == 0 ? sink->take(sink->userdata, &view, why) : r;
}

/* The library keeps the whole frame of a lossless picture, four bytes for each pixel, and up to five for an alpha
 * plane. */
static uint64_t webp_need(const void *opaque, const struct box *box) {
        const struct webp_state *state = opaque;
        uint64_t n_box = (uint64_t)(box->width + 2 * MARGIN + 1) * (box->height + 2 * MARGIN + 1) *
                         library_bytes(state);

        return 2 * n_box + (uint64_t)state->frame.width * state->frame.height * 5;
}

const struct picture_format format_webp = {
        .name = "WebP",
        .probe = webp_probe,
        .state_new = webp_state_new,
        .state_free = free,
        .open = webp_open,
        .read_rows = webp_read_rows,
        .need = webp_need,
        .as = webp_as,
};
