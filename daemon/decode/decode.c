#include "daemon/decode/decode.h"

#include "daemon/decode/picture_format.h"
#include "daemon/decode/row_band.h"
#include "daemon/decode/samples.h"
#include "proto/base/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* One row for each format. */
static const struct picture_format *const FORMATS[] = { &format_jpeg, &format_png,  &format_webp, &format_bmp,
                                                        &format_pnm,  &format_tiff, &format_gif,  &format_pil };

#define N_FORMATS ARRAY_SIZE(FORMATS)

struct decoder {
        struct decode_limits limits;
        enum decode_jpeg jpeg;
        enum decoded_by decoded_by; /* the last successful read */
        bool handed_over;
        void *states[N_FORMATS]; /* NULL until the first picture of the format */
        size_t idx_format;       /* of the open picture */
        bool is_open;            /* between a successful open and its read */
        struct image_info info;
        enum decode_as as;   /* of the open picture */
        struct scratch work; /* for the format's own use */
        struct scratch grey; /* rows on their way to a sink that wants grey */
};

/* ---- formats that are refused by name ------------------------------------------------------------------------ */

struct magic {
        const char *name;
        size_t offset, n_bytes;
        const char *bytes;
};

static const struct magic UNHANDLED[] = {
        { "JPEG 2000", 0, 12, "\0\0\0\x0cjP  \r\n\x87\n" },
        { "JPEG 2000 code stream", 0, 4, "\xff\x4f\xff\x51" },
        { "JPEG XL", 0, 2, "\xff\x0a" },
        { "JPEG XL", 0, 12, "\0\0\0\x0cJXL \r\n\x87\n" },
        { "AVIF", 4, 8, "ftypavif" },
        { "HEIF", 4, 7, "ftyphei" },
        { "HEIF", 4, 8, "ftypmif1" },
        { "PAM", 0, 3, "P7\n" },
        { "PSD", 0, 4, "8BPS" },
        { "ICO", 0, 4, "\0\0\1\0" },
        { "PDF", 0, 5, "%PDF-" },
        { "gzip", 0, 2, "\x1f\x8b" },
        { "ZIP", 0, 4, "PK\3\4" },
};

/* An error page that was saved under a picture's name begins with a tag, possibly after blanks or a byte order mark. */
static bool looks_like_markup(const uint8_t *bytes, size_t n_bytes) {
        static const char *const tags[] = { "<!doctype", "<html", "<head", "<body", "<?xml", "<svg", "<!--" };
        size_t i = n_bytes >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

        while (i < n_bytes && i < 1024 && strchr(" \t\r\n", bytes[i]) && bytes[i])
                i++;
        for (size_t t = 0; t < ARRAY_SIZE(tags); t++) {
                size_t n_tag = strlen(tags[t]);

                if (n_bytes - i >= n_tag && strncasecmp((const char *)bytes + i, tags[t], n_tag) == 0)
                        return true;
        }
        return false;
}

static const char *name_unhandled(const uint8_t *bytes, size_t n_bytes) {
        for (size_t i = 0; i < ARRAY_SIZE(UNHANDLED); i++) {
                const struct magic *magic = &UNHANDLED[i];

                if (n_bytes >= magic->offset + magic->n_bytes &&
                    memcmp(bytes + magic->offset, magic->bytes, magic->n_bytes) == 0)
                        return magic->name;
        }
        if (looks_like_markup(bytes, n_bytes))
                return "HTML or XML text";
        return NULL;
}

/* "JPEG, PNG, ...": the supported formats. Returns `buffer`. */
static const char *join_names(char *buffer, size_t size) {
        size_t used = 0;

        buffer[0] = '\0';
        for (size_t i = 0; i < N_FORMATS && used < size; i++)
                if (FORMATS[i] != &format_pil) /* nobody makes such files */
                        used += (size_t)snprintf(buffer + used, size - used, "%s%s", i > 0 ? ", " : "",
                                                 FORMATS[i]->name);
        return buffer;
}

static int decode_refuse_format(const uint8_t *bytes, size_t n_bytes, struct why *why) {
        const char *name = name_unhandled(bytes, n_bytes);
        char begins[3 * 8 + 1] = "", handled[128];

        if (n_bytes == 0)
                return why_set(why, -EBADMSG, "the file is empty");
        if (name)
                return why_set(why, -ENOTSUP, "the file is %s, which is not handled; handled are %s", name,
                               join_names(handled, sizeof(handled)));

        for (size_t i = 0; i < 8 && i < n_bytes; i++)
                snprintf(begins + 3 * i, 4, " %02x", bytes[i]);
        return why_set(why, -ENOTSUP, "unknown picture format (%zu bytes, beginning with%s); handled are %s", n_bytes,
                       begins, join_names(handled, sizeof(handled)));
}

/* ---- what the formats share ---------------------------------------------------------------------------------- */

int check_pixels(const struct decode_limits *limits, uint32_t width, uint32_t height, struct why *why) {
        uint64_t n_pixels = (uint64_t)width * height;

        if (n_pixels > limits->max_pixels)
                return why_set(why, -EFBIG,
                               "the picture says that it has %" PRIu32 " x %" PRIu32 " = %" PRIu64
                               " pixels; the limit is %" PRIu64 " pixels",
                               width, height, n_pixels, limits->max_pixels);
        return 0;
}

#define SCRATCH_STEP (256u << 10) /* bytes: grows in steps, otherwise each slightly larger picture would allocate */

static void scratch_release(struct scratch *scratch) {
        free(scratch->bytes);
        *scratch = (struct scratch){};
}

int scratch_reserve(struct scratch *scratch, uint64_t n_bytes, const struct decode_limits *limits, struct why *why) {
        if (n_bytes <= scratch->n_bytes)
                return 0;
        if (n_bytes > limits->max_scratch_bytes)
                return why_set(why, -EFBIG,
                               "the picture needs %" PRIu64 " bytes of scratch memory; the limit is %" PRIu64 " bytes",
                               n_bytes, limits->max_scratch_bytes);

        scratch_release(scratch); /* first, so that old and new memory are never held together */
        n_bytes = (n_bytes + SCRATCH_STEP - 1) / SCRATCH_STEP * SCRATCH_STEP;
        scratch->bytes = malloc(n_bytes);
        if (!scratch->bytes)
                return why_set(why, -ENOMEM, "no memory for %" PRIu64 " bytes of scratch for a picture", n_bytes);
        scratch->n_bytes = n_bytes;
        return 0;
}

/* ---- the decoder --------------------------------------------------------------------------------------------- */

int decoder_new(const struct decode_limits *limits, enum decode_jpeg jpeg, struct decoder **ret_decoder,
                struct why *why) {
        struct decoder *decoder = calloc(1, sizeof(*decoder));

        if (!decoder)
                return why_set(why, -ENOMEM, "no memory for a decoder");
        decoder->limits = *limits;
        decoder->jpeg = jpeg;
        *ret_decoder = decoder;
        return 0;
}

void decoder_free(struct decoder *decoder) {
        if (!decoder)
                return;
        for (size_t i = 0; i < N_FORMATS; i++)
                if (decoder->states[i])
                        FORMATS[i]->state_free(decoder->states[i]);
        scratch_release(&decoder->work);
        scratch_release(&decoder->grey);
        free(decoder);
}

void decoder_close(struct decoder *decoder) {
        decoder->is_open = false;
        if (decoder->work.n_bytes > DECODE_SCRATCH_KEEP)
                scratch_release(&decoder->work);
}

/* Finds the format of these bytes; its state is there afterwards. */
static int decode_begin(struct decoder *decoder, const uint8_t *bytes, size_t n_bytes, size_t *ret_idx,
                        struct why *why) {
        size_t i = 0;
        int r;

        decoder_close(decoder);

        while (i < N_FORMATS && !FORMATS[i]->probe(bytes, n_bytes))
                i++;
        if (i == N_FORMATS)
                return decode_refuse_format(bytes, n_bytes, why);

        if (!decoder->states[i]) {
                r = FORMATS[i]->state_new(&decoder->limits, decoder->jpeg, &decoder->states[i]);
                if (r < 0)
                        return why_errno(why, r, "cannot start a %s decoder", FORMATS[i]->name);
        }
        *ret_idx = i;
        return 0;
}

int decoder_open(struct decoder *decoder, const uint8_t *bytes, size_t n_bytes, struct image_info *ret_info,
                 struct why *why) {
        struct image_info info;
        size_t i;
        int r = decode_begin(decoder, bytes, n_bytes, &i, why);

        if (r < 0)
                return r;
        r = FORMATS[i]->open(decoder->states[i], bytes, n_bytes, &info, why);
        if (r < 0)
                return r;

        info.format = FORMATS[i]->name;
        decoder->idx_format = i;
        decoder->as = DECODE_COLORS;
        decoder->info = info;
        decoder->is_open = true;
        *ret_info = info;
        return 0;
}

int refuse_as(enum decode_as as, const char *what, struct why *why) {
        if (as == DECODE_WIDE)
                return why_set(why, -ENOTSUP, "has %s, not grey of 16 bits, which is in PNG, TIFF and PGM files", what);
        return why_set(why, -ENOTSUP,
                       "has %s, not numbers of at most 8 bits, which are palettes and grey in PNG, GIF, BMP, TIFF and "
                       "PGM files",
                       what);
}

int decoder_as(struct decoder *decoder, enum decode_as as, struct why *why) {
        const struct picture_format *format = FORMATS[decoder->idx_format];
        bool by_format = as != DECODE_COLORS && as != DECODE_GREY;
        int r = 0;

        assert(decoder->is_open && decoder->as == DECODE_COLORS);
        if (by_format && format->as)
                r = format->as(decoder->states[decoder->idx_format], as, why);
        else if (by_format)
                r = as == DECODE_ALPHA ? DECODE_OPAQUE : refuse_as(as, format->name, why);
        if (r == 0)
                decoder->as = as;
        return r;
}

static void check_box(const struct decoder *decoder, const struct box *box) {
        const struct image_info *info = &decoder->info;

        assert(decoder->is_open);
        assert(box->width > 0 && box->width <= info->width && box->x <= info->width - box->width);
        assert(box->height > 0 && box->height <= info->height && box->y <= info->height - box->height);
}

/* Whether grey has to be made of the open picture's colours; those of a grey file are grey as they are. */
static bool makes_grey(const struct decoder *decoder) {
        const struct picture_format *format = FORMATS[decoder->idx_format];

        return decoder->as == DECODE_GREY &&
               !(format->is_grey && format->is_grey(decoder->states[decoder->idx_format]));
}

/* Grey is made of the colours of any format, a few rows at a time. */
struct greying {
        const struct row_sink *sink;
        uint8_t *pixels; /* ROW_BAND_ROWS rows */
};

static int grey_begin(void *userdata, struct why *why) {
        const struct greying *greying = userdata;

        return greying->sink->begin(greying->sink->userdata, why);
}

static int grey_take(void *userdata, const struct view *rows, struct why *why) {
        const struct greying *greying = userdata;
        struct view grey = { .pixels = greying->pixels,
                             .stride = (size_t)rows->width * PIXEL_BYTES,
                             .width = rows->width };
        int r = 0;

        for (uint32_t y = 0; y < rows->height && r == 0; y += grey.height) {
                grey.height = rows->height - y < ROW_BAND_ROWS ? rows->height - y : ROW_BAND_ROWS;
                for (uint32_t i = 0; i < grey.height; i++)
                        colors_to_grey(rows->pixels + (y + i) * rows->stride, rows->width,
                                       greying->pixels + i * grey.stride);
                r = greying->sink->take(greying->sink->userdata, &grey, why);
        }
        return r;
}

int decoder_read_rows(struct decoder *decoder, const struct box *box, const struct row_sink *sink, struct why *why) {
        const struct picture_format *format = FORMATS[decoder->idx_format];
        void *state = decoder->states[decoder->idx_format];
        struct greying greying = { .sink = sink };
        struct row_sink grey = { .begin = grey_begin, .take = grey_take, .userdata = &greying };
        bool is_greying = makes_grey(decoder);
        int r = 0;

        check_box(decoder, box);
        decoder->is_open = false;
        if (is_greying)
                r = scratch_reserve(&decoder->grey, row_band_bytes(box->width), &decoder->limits, why);
        greying.pixels = decoder->grey.bytes;
        if (r == 0)
                r = format->read_rows(state, box, is_greying ? &grey : sink, &decoder->work, why);
        if (r < 0)
                return r;

        decoder->handed_over = false;
        decoder->decoded_by = format->decoded_by ? format->decoded_by(state, &decoder->handed_over) : DECODED_BY_OTHERS;
        return 0;
}

/* Rows that are kept: a sink that copies them to their final places. */
struct collector {
        uint8_t *out;
        size_t stride;
        uint32_t width, height, n_rows;
};

static int collect_begin(void *userdata, struct why *why) {
        struct collector *collector = userdata;

        collector->n_rows = 0;
        return 0;
}

static int collect_take(void *userdata, const struct view *rows, struct why *why) {
        struct collector *collector = userdata;

        assert(rows->width == collector->width && rows->height <= collector->height - collector->n_rows);
        for (uint32_t y = 0; y < rows->height; y++)
                memcpy(collector->out + collector->n_rows++ * collector->stride, rows->pixels + y * rows->stride,
                       (size_t)rows->width * PIXEL_BYTES);
        return 0;
}

int decoder_read_box(struct decoder *decoder, const struct box *box, uint8_t *out, size_t stride, struct why *why) {
        struct collector collector = { .out = out, .stride = stride, .width = box->width, .height = box->height };
        struct row_sink sink = { .begin = collect_begin, .take = collect_take, .userdata = &collector };
        int r = decoder_read_rows(decoder, box, &sink, why);

        assert(r < 0 || collector.n_rows == box->height);
        return r;
}

int decoder_read_into(struct decoder *decoder, uint8_t *out, size_t stride, struct why *why) {
        struct box whole = { 0, 0, decoder->info.width, decoder->info.height };

        assert(stride >= (size_t)whole.width * PIXEL_BYTES);
        return decoder_read_box(decoder, &whole, out, stride, why);
}

int decoder_open_bands(struct decoder *decoder, const uint8_t *bytes, size_t n_bytes, struct band_info *ret_info,
                       struct why *why) {
        size_t i;
        int r = decode_begin(decoder, bytes, n_bytes, &i, why);

        if (r < 0)
                return r;
        if (!FORMATS[i]->open_bands)
                return why_set(why, -ENOTSUP, "the file is %s, and bands are read of TIFF files alone",
                               FORMATS[i]->name);
        decoder->idx_format = i;
        return FORMATS[i]->open_bands(decoder->states[i], bytes, n_bytes, ret_info, why);
}

int decoder_read_bands(struct decoder *decoder, uint8_t *out, size_t stride, struct why *why) {
        int r = FORMATS[decoder->idx_format]->read_bands(decoder->states[decoder->idx_format], out, stride,
                                                         &decoder->work, why);

        if (r < 0)
                return r;
        decoder->handed_over = false;
        decoder->decoded_by = DECODED_BY_OTHERS;
        return 0;
}

uint64_t decoder_need_bands(const struct decoder *decoder) {
        return FORMATS[decoder->idx_format]->need_bands(decoder->states[decoder->idx_format]);
}

/* ---- results and memory -------------------------------------------------------------------------------------- */

enum decoded_by decoder_decoded_by(const struct decoder *decoder) {
        return decoder->decoded_by;
}

bool decoder_handed_over(const struct decoder *decoder) {
        return decoder->handed_over;
}

uint64_t decoder_need(const struct decoder *decoder, const struct box *box) {
        check_box(decoder, box);
        return FORMATS[decoder->idx_format]->need(decoder->states[decoder->idx_format], box) +
               (makes_grey(decoder) ? row_band_bytes(box->width) : 0);
}

uint64_t decoder_work(const struct decoder *decoder, const struct box *box) {
        uint64_t n_pixels = (uint64_t)box->width * box->height,
                 n_through = (uint64_t)decoder->info.width * (box->y + box->height);

        check_box(decoder, box);
        if (FORMATS[decoder->idx_format]->has_plain_rows)
                return n_pixels * DECODE_WORK_COPY;
        return n_through * DECODE_WORK_BITS + n_pixels * DECODE_WORK_PIXELS;
}

void decoder_trim(struct decoder *decoder) {
        scratch_release(&decoder->work);
        scratch_release(&decoder->grey);
        for (size_t i = 0; i < N_FORMATS; i++)
                if (decoder->states[i] && FORMATS[i]->trim)
                        FORMATS[i]->trim(decoder->states[i]);
}

size_t decoder_scratch_bytes(const struct decoder *decoder) {
        size_t n_bytes = decoder->work.n_bytes + decoder->grey.n_bytes;

        for (size_t i = 0; i < N_FORMATS; i++)
                if (decoder->states[i] && FORMATS[i]->bytes)
                        n_bytes += FORMATS[i]->bytes(decoder->states[i]);
        return n_bytes;
}
