#include "daemon/codec/masks/channels.h"

#define BAND_ROWS 16u /* of pixels, before they are fed */

static uint64_t channels_band_bytes(const struct geometry *geometry) {
        return (uint64_t)geometry->source.width * BAND_ROWS * N_CHANNELS;
}

uint64_t channels_bytes(const struct geometry *geometry) {
        return channels_band_bytes(geometry) + (uint64_t)geometry->width * geometry->height * N_CHANNELS;
}

static inline void channels_put_row(const uint8_t *a, const uint8_t *b, const uint8_t *c, size_t step, uint32_t width,
                                    uint8_t *pixels) {
        for (size_t x = 0; x < width; x++) {
                pixels[x * N_CHANNELS] = a[x * step];
                pixels[x * N_CHANNELS + 1] = b[x * step];
                pixels[x * N_CHANNELS + 2] = c[x * step];
        }
}

static void channels_interleave(const struct channels *channels, size_t at, uint32_t width, uint8_t *pixels) {
        const uint8_t *a = channels->bytes[0] + at * channels->step, *b = channels->bytes[1] + at * channels->step,
                      *c = channels->bytes[2] + at * channels->step;

        if (channels->step == 1) /* which a compiler can make fast */
                channels_put_row(a, b, c, 1, width, pixels);
        else
                channels_put_row(a, b, c, channels->step, width, pixels);
}

static int run_steps(struct codec_tools *tools, const struct channels *channels, uint8_t *band, uint8_t *moved,
                     struct why *why) {
        const struct geometry *geometry = &tools->geometry;
        const struct box *box = &geometry->source;
        size_t band_stride = (size_t)box->width * N_CHANNELS;
        int r = recipe_begin(tools->workspace, geometry, moved, (size_t)geometry->width * N_CHANNELS, why);

        for (uint32_t first = 0; first < box->height && r == 0; first += BAND_ROWS) {
                uint32_t n = box->height - first < BAND_ROWS ? box->height - first : BAND_ROWS;

                for (uint32_t i = 0; i < n; i++)
                        channels_interleave(channels, (size_t)(box->y + first + i) * channels->width + box->x,
                                            box->width, band + i * band_stride);
                recipe_feed(tools->workspace,
                            &(struct view){ .pixels = band, .stride = band_stride, .width = box->width, .height = n });
        }
        return r < 0 ? r : recipe_end(tools->workspace, why);
}

int channels_move(struct codec_tools *tools, const struct channels *channels, const uint8_t **ret_pixels,
                  struct why *why) {
        int r = codec_memory_reserve(&tools->planes, channels_bytes(&tools->geometry), why);
        uint8_t *moved;

        if (r < 0)
                return r;
        moved = tools->planes.bytes + channels_band_bytes(&tools->geometry);
        r = run_steps(tools, channels, tools->planes.bytes, moved, why);
        if (r == 0)
                *ret_pixels = moved;
        return r;
}
