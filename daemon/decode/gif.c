/* decode/gif.c: GIF through giflib: the first frame, on its canvas.
 *
 * As in Pillow 9.4: the canvas grows to where the frame ends; around the frame it has the transparent colour if the
 * frame has one, else colour 0; transparency is dropped; values above the palette are black, as from Pillow 10.1 on,
 * unless it is a grey ramp. One kind of file is read wrongly by Pillow (it takes the file's palette although the frame
 * has a grey one); it is refused.
 *
 * Rows come from the top: those above the box are decompressed and discarded, those below are not read. An interlaced
 * frame is kept, one byte for each pixel. If the end of the frame's data is missing, all rows are read, because a file
 * that was cut is refused wherever the box lies. */
#include "daemon/decode/picture_format.h"
#include "daemon/decode/row_band.h"
#include "daemon/decode/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gif_lib.h>

#define LIBRARY_BYTES (64u << 10) /* giflib's own memory: tables of LZW, a palette */

struct gif_state {
        const struct decode_limits *limits; /* the decoder's */
        const uint8_t *bytes;
        size_t n_bytes, at; /* at: the next byte that giflib reads */
        GifFileType *gif;   /* of the open picture */
        uint32_t width, height;
        struct box frame; /* within the canvas */
        bool is_interlaced;
        bool is_whole;   /* the end of the frame's data is there */
        uint8_t outside; /* the value around the frame */
        int transparent; /* the value that is transparent; -1: none */
        struct palette palette;
};

static bool gif_probe(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 6 && (memcmp(bytes, "GIF87a", 6) == 0 || memcmp(bytes, "GIF89a", 6) == 0);
}

static int gif_state_new(const struct decode_limits *limits, enum decode_jpeg jpeg, void **ret_state) {
        struct gif_state *state = calloc(1, sizeof(*state));

        if (!state)
                return -ENOMEM;
        state->limits = limits;
        *ret_state = state;
        return 0;
}

static void gif_end_picture(struct gif_state *state) {
        if (state->gif)
                DGifCloseFile(state->gif, NULL);
        state->gif = NULL;
}

static void gif_state_free(void *opaque) {
        gif_end_picture(opaque);
        free(opaque);
}

/* Ends the picture with giflib's error. */
static int gif_fail(struct gif_state *state, int error, struct why *why) {
        const char *text = GifErrorString(error);

        gif_end_picture(state);
        if (error == D_GIF_ERR_NOT_ENOUGH_MEM)
                return why_set(why, -ENOMEM, "GIF: no memory");
        return why_set(why, -EBADMSG, "GIF: %s", text ? text : "the file is damaged or cut short");
}

/* ---- header -------------------------------------------------------------------------------------------------- */

static int gif_on_read(GifFileType *gif, GifByteType *out, int n_wanted) {
        struct gif_state *state = gif->UserData;
        size_t n = state->n_bytes - state->at;

        if (n_wanted < 0)
                return 0;
        if (n > (size_t)n_wanted)
                n = (size_t)n_wanted;
        memcpy(out, state->bytes + state->at, n);
        state->at += n;
        return (int)n;
}

/* Reads an extension before the frame. Only the transparent colour matters. */
static int read_extension(struct gif_state *state) {
        GifByteType *block;
        int code;

        if (DGifGetExtension(state->gif, &code, &block) == GIF_ERROR)
                return GIF_ERROR;
        if (code == GRAPHICS_EXT_FUNC_CODE && block && block[0] >= 4 && block[1] & 1)
                state->transparent = state->outside = block[4];
        while (block)
                if (DGifGetExtensionNext(state->gif, &block) == GIF_ERROR)
                        return GIF_ERROR;
        return GIF_OK;
}

/* Reads up to the frame's pixels. Returns GIF_OK or GIF_ERROR; *ret_found is false if there is no frame. */
static int gif_find_frame(struct gif_state *state, bool *ret_found) {
        GifRecordType type;

        for (;;) {
                if (DGifGetRecordType(state->gif, &type) == GIF_ERROR)
                        return GIF_ERROR;
                *ret_found = type == IMAGE_DESC_RECORD_TYPE;
                if (type == IMAGE_DESC_RECORD_TYPE)
                        return DGifGetImageDesc(state->gif);
                if (type != EXTENSION_RECORD_TYPE)
                        return GIF_OK;
                if (read_extension(state) == GIF_ERROR)
                        return GIF_ERROR;
        }
}

static bool is_grey_ramp(const ColorMapObject *colors) {
        for (int i = 0; i < colors->ColorCount; i++)
                if (colors->Colors[i].Red != i || colors->Colors[i].Green != i || colors->Colors[i].Blue != i)
                        return false;
        return true;
}

static int take_palette(struct gif_state *state, struct why *why) {
        const ColorMapObject *own = state->gif->Image.ColorMap, *common = state->gif->SColorMap;
        const ColorMapObject *colors = own ? own : common;

        if (own && common && is_grey_ramp(own) && !is_grey_ramp(common))
                return why_set(why, -ENOTSUP,
                               "GIF: a frame with a grey palette in a file of other colours is not handled");
        palette_set_grey(&state->palette);
        if (colors && !is_grey_ramp(colors))
                memset(&state->palette, 0, sizeof(state->palette));
        for (int i = 0; colors && i < colors->ColorCount && i < 256; i++) {
                state->palette.colors[i][0] = colors->Colors[i].Red;
                state->palette.colors[i][1] = colors->Colors[i].Green;
                state->palette.colors[i][2] = colors->Colors[i].Blue;
        }
        return 0;
}

/* Walks over the blocks of the frame's data up to the empty one. */
static bool gif_has_end(const uint8_t *bytes, size_t n_bytes, size_t at) {
        while (at < n_bytes && bytes[at] != 0)
                at += 1u + bytes[at];
        return at < n_bytes;
}

static int take_frame(struct gif_state *state, struct why *why) {
        const GifImageDesc *image = &state->gif->Image;
        int r;

        if (image->Width <= 0 || image->Height <= 0 || image->Left < 0 || image->Top < 0)
                return why_set(why, -EBADMSG, "GIF: the first frame has no pixels");
        state->frame = (struct box){
                .x = (uint32_t)image->Left,
                .y = (uint32_t)image->Top,
                .width = (uint32_t)image->Width,
                .height = (uint32_t)image->Height,
        };
        state->width = state->frame.x + state->frame.width;
        state->height = state->frame.y + state->frame.height;
        if (state->gif->SWidth > 0 && state->width < (uint32_t)state->gif->SWidth)
                state->width = (uint32_t)state->gif->SWidth;
        if (state->gif->SHeight > 0 && state->height < (uint32_t)state->gif->SHeight)
                state->height = (uint32_t)state->gif->SHeight;
        state->is_interlaced = image->Interlace;
        state->is_whole = gif_has_end(state->bytes, state->n_bytes, state->at);
        r = check_pixels(state->limits, state->width, state->height, why);
        return r < 0 ? r : take_palette(state, why);
}

static int gif_open(void *opaque, const uint8_t *bytes, size_t n_bytes, struct image_info *ret_info, struct why *why) {
        struct gif_state *state = opaque;
        bool found = false;
        int error = 0, r;

        gif_end_picture(state);
        state->bytes = bytes;
        state->n_bytes = n_bytes;
        state->at = 0;
        state->outside = 0;
        state->transparent = -1;
        state->gif = DGifOpen(state, gif_on_read, &error);
        if (!state->gif)
                return gif_fail(state, error, why);
        if (gif_find_frame(state, &found) == GIF_ERROR)
                return gif_fail(state, state->gif->Error, why);

        r = found ? take_frame(state, why) : why_set(why, -EBADMSG, "GIF: the file has no frame");
        if (r < 0) {
                gif_end_picture(state);
                return r;
        }
        ret_info->width = state->width;
        ret_info->height = state->height;
        return 0;
}

/* Each value is looked up in a palette: that of the alphas, or that of the values themselves. */
static int gif_as(void *opaque, enum decode_as as, struct why *why) {
        struct gif_state *state = opaque;

        if (as == DECODE_WIDE)
                return refuse_as(as, "8 bits", why);
        if (as == DECODE_ALPHA && state->transparent < 0)
                return DECODE_OPAQUE;
        palette_set_grey(&state->palette);
        for (int i = 0; i < 256 && as == DECODE_ALPHA; i++)
                put_level(i == state->transparent ? 0 : 255, state->palette.colors[i]);
        return 0;
}

/* ---- pixels -------------------------------------------------------------------------------------------------- */

static uint64_t gif_frame_bytes(const struct gif_state *state) {
        return (uint64_t)state->frame.width * (state->is_interlaced ? state->frame.height : 1);
}

/* Reads all rows of an interlaced frame into their final places. */
static int gif_read_interlaced(const struct gif_state *state, uint8_t *frame) {
        static const uint32_t first[] = { 0, 4, 2, 1 }, step[] = { 8, 8, 4, 2 };

        for (unsigned pass = 0; pass < 4; pass++)
                for (uint32_t y = first[pass]; y < state->frame.height; y += step[pass])
                        if (DGifGetLine(state->gif, frame + (size_t)y * state->frame.width, (int)state->frame.width) ==
                            GIF_ERROR)
                                return GIF_ERROR;
        return GIF_OK;
}

/* Converts the box's part of row y of the canvas; `row` is the frame's row, NULL above and below the frame. */
static void gif_convert_row(const struct gif_state *state, const uint8_t *row, const struct box *box, uint8_t *rgb) {
        const struct box *frame = &state->frame;
        uint32_t left = box->x > frame->x ? box->x : frame->x;
        uint32_t right = box->x + box->width < frame->x + frame->width ? box->x + box->width : frame->x + frame->width;

        if (!row || right <= left)
                left = right = box->x + box->width;
        for (uint32_t x = box->x; x < left; x++)
                memcpy(rgb + (size_t)(x - box->x) * PIXEL_BYTES, state->palette.colors[state->outside], PIXEL_BYTES);
        if (left < right)
                indices_to_rgb(&state->palette, 8, row, left - frame->x, right - left,
                               rgb + (size_t)(left - box->x) * PIXEL_BYTES);
        for (uint32_t x = right; x < box->x + box->width; x++)
                memcpy(rgb + (size_t)(x - box->x) * PIXEL_BYTES, state->palette.colors[state->outside], PIXEL_BYTES);
}

/* Reads row after row from the canvas's top, as far as they are needed. Returns 0, the sink's error, or 1 for an error
 * of giflib. */
static int read_canvas(const struct gif_state *state, const struct box *box, uint8_t *indices, struct row_band *band) {
        const struct box *frame = &state->frame;
        uint32_t end = state->is_whole ? box->y + box->height : state->height;
        int r = 0;

        if (state->is_interlaced && gif_read_interlaced(state, indices) == GIF_ERROR)
                return 1;
        for (uint32_t y = 0; r == 0 && y < end; y++) {
                const uint8_t *row = y >= frame->y && y - frame->y < frame->height ? indices : NULL;

                if (row && state->is_interlaced)
                        row = indices + (size_t)(y - frame->y) * frame->width;
                else if (row && DGifGetLine(state->gif, indices, (int)frame->width) == GIF_ERROR)
                        return 1;
                if (y >= box->y && y - box->y < box->height) {
                        gif_convert_row(state, row, box, row_band_next(band));
                        r = row_band_push(band);
                }
        }
        return r < 0 ? r : row_band_end(band);
}

static int gif_read_rows(void *opaque, const struct box *box, const struct row_sink *sink, struct scratch *work,
                         struct why *why) {
        struct gif_state *state = opaque;
        struct row_band band;
        int r;

        r = scratch_reserve(work, gif_frame_bytes(state) + row_band_bytes(box->width), state->limits, why);
        if (r == 0)
                r = row_band_begin(&band, sink, work->bytes + gif_frame_bytes(state), box->width, why);
        if (r == 0)
                r = read_canvas(state, box, work->bytes, &band);
        if (r == 1)
                return gif_fail(state, state->gif->Error, why);
        gif_end_picture(state);
        return r;
}

static uint64_t gif_need(const void *opaque, const struct box *box) {
        return gif_frame_bytes(opaque) + row_band_bytes(box->width) + LIBRARY_BYTES;
}

const struct picture_format format_gif = {
        .name = "GIF",
        .probe = gif_probe,
        .state_new = gif_state_new,
        .state_free = gif_state_free,
        .open = gif_open,
        .read_rows = gif_read_rows,
        .need = gif_need,
        .as = gif_as,
};
