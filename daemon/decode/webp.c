/* decode/webp.c: WebP through libwebp.
 *
 * Pillow reads every WebP as an animation and takes the first frame: a canvas of transparent black, into which the
 * frame is decoded at its place; then alpha is dropped. A still picture is a frame that fills the canvas. So the
 * container is walked here as far as the first frame, and libwebp gets the rest. */
#include "daemon/decode/format.h"

#include "daemon/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>

#define RIFF_HEADER  12u /* "RIFF", size, "WEBP" */
#define CHUNK_HEADER 8u  /* name, size */
#define FRAME_HEADER 16u /* x, y, width, height, duration: 3 bytes each; flags */

struct webp_state {
        const struct decode_limits *limits; /* the decoder's */
        const uint8_t *bytes;               /* of the frame, or of the file if it is a still picture */
        size_t n_bytes;
        uint32_t width, height; /* of the canvas */
        struct box frame;       /* within the canvas */
};

static uint32_t le24(const uint8_t *bytes) {
        return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16;
}

static uint32_t le32(const uint8_t *bytes) {
        return le24(bytes) | (uint32_t)bytes[3] << 24;
}

static bool webp_probe(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 16 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBPVP8", 7) == 0;
}

static int webp_state_new(const struct decode_limits *limits, void **ret_state) {
        struct webp_state *state = calloc(1, sizeof(*state));

        if (!state)
                return -ENOMEM;
        state->limits = limits;
        *ret_state = state;
        return 0;
}

/* Finds the first chunk ANMF. Bytes are those of the container, whose size was checked. */
static int find_frame(struct webp_state *state, const uint8_t *bytes, size_t n_bytes, struct why *why) {
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
        r = check_pixels(state->limits, state->width, state->height, why);
        if (r < 0)
                return r;

        state->bytes = bytes;
        state->n_bytes = n_container;
        state->frame = (struct box){};
        if (features.has_animation) {
                r = find_frame(state, bytes, n_container, why);
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

static int webp_read(void *opaque, uint8_t *out, size_t stride, struct scratch *work, struct why *why) {
        struct webp_state *state = opaque;
        const struct box *frame = &state->frame;
        uint8_t *corner = out + frame->y * stride + (size_t)frame->x * PIXEL_BYTES;
        size_t n_row = (size_t)frame->width * PIXEL_BYTES;

        (void)work;
        if (frame->width < state->width || frame->height < state->height)
                for (uint32_t y = 0; y < state->height; y++)
                        memset(out + y * stride, 0, (size_t)state->width * PIXEL_BYTES);

        if (!WebPDecodeRGBInto(state->bytes, state->n_bytes, corner, stride * (frame->height - 1) + n_row, (int)stride))
                return why_set(why, -EBADMSG, "WebP: the data are damaged or cut short");
        return 0;
}

const struct format format_webp = {
        .name = "WebP",
        .probe = webp_probe,
        .state_new = webp_state_new,
        .state_free = free,
        .open = webp_open,
        .read = webp_read,
};
