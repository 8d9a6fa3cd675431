#include "daemon/codec/layered.h"

#include <string.h>

#include "daemon/codec/turned.h"

#define UPRIGHT 1u

static uint64_t layer_bytes(const struct box *source) {
        return (uint64_t)source->width * source->height * PIXEL_BYTES;
}

/* Turned pixels are decoded beside their place. */
uint64_t layered_need(const struct codec_tools *tools, const struct box *source) {
        return layer_bytes(source) * (tools->orientation == UPRIGHT ? 2 : 3) +
               (uint64_t)source->width * PIXEL_BYTES * 8; /* a decoder's band of grey */
}

int layered_open(struct codec_tools *tools, struct why *why) {
        int r = decoder_as(tools->decoder, DECODE_ALPHA, why);

        tools->is_opaque = r == DECODE_OPAQUE;
        return r < 0 ? r : 0;
}

/* What the decoder's picture is now -> `layer`, upright. */
static int read_layer(struct codec_tools *tools, const struct box *source, uint8_t *layer, uint8_t *beside,
                      struct why *why) {
        bool is_turned = tools->orientation != UPRIGHT;
        int r = decoder_read_box(tools->decoder, source, is_turned ? beside : layer,
                                 (size_t)source->width * PIXEL_BYTES, why);

        if (r == 0 && is_turned)
                turned_copy(tools->orientation, beside, source->width, source->height, layer);
        return r;
}

static int read_alpha(struct codec_tools *tools, const struct codec_input *input, const struct box *source,
                      uint8_t *layer, uint8_t *beside, struct why *why) {
        struct image_info info;
        int r;

        if (tools->is_opaque) {
                memset(layer, 255, (size_t)layer_bytes(source));
                return 0;
        }
        r = read_layer(tools, source, layer, beside, why);
        return r < 0 ? r : decoder_open(tools->decoder, input->bytes, input->n_bytes, &info, why);
}

int layered_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                   const struct box *source, uint8_t *out, size_t stride, struct why *why) {
        bool is_grey = recipe_format(codec->recipe)->mode == PIXELS_LA;
        size_t n_layer = (size_t)layer_bytes(source);
        uint8_t *colors, *alpha, *beside;
        int r = codec_memory_reserve(&tools->rows, n_layer * (tools->orientation == UPRIGHT ? 2 : 3), why);

        if (r < 0)
                return r;
        colors = tools->rows.bytes;
        alpha = colors + n_layer;
        beside = alpha + n_layer;
        r = read_alpha(tools, input, source, alpha, beside, why);
        if (r == 0 && is_grey)
                r = decoder_as(tools->decoder, DECODE_GREY, why);
        if (r == 0)
                r = read_layer(tools, source, colors, beside, why);
        return r < 0 ? r : recipe_run_alpha(tools->workspace, &tools->geometry, colors, alpha, out, stride, why);
}
