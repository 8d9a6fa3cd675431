/* decode/tiff/tiff.c: TIFF through libtiff: the first picture of the file.
 *
 * As in Pillow 9.4: the picture is turned as its tag Orientation says, which is done only for TIFF; alpha is not part
 * of the colours, and is divided out if they were multiplied with it.
 *
 * A picture that needs no turning goes row by row to the sink. Otherwise the box's part of it is kept and passed on
 * from there. */
#include "daemon/decode/picture_format.h"
#include "daemon/decode/row_band.h"
#include "daemon/decode/tiff/tiff_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool tiff_probe(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 8 && (memcmp(bytes, "II\x2a\0", 4) == 0 || memcmp(bytes, "MM\0\x2a", 4) == 0 ||
                                memcmp(bytes, "II\x2b\0", 4) == 0 || memcmp(bytes, "MM\0\x2b", 4) == 0);
}

static int tiff_state_new(const struct decode_limits *limits, enum decode_jpeg jpeg, void **ret_state) {
        struct tiff_source *source = calloc(1, sizeof(*source));

        if (!source)
                return -ENOMEM;
        source->limits = limits;
        *ret_state = source;
        return 0;
}

static void tiff_state_free(void *opaque) {
        tiff_source_close(opaque);
        free(opaque);
}

/* ---- orientation --------------------------------------------------------------------------------------------- */

static bool tiff_is_turned(const struct tiff_source *source) {
        return source->orientation >= ORIENTATION_TOPRIGHT && source->orientation <= ORIENTATION_LEFTBOT;
}

/* Rows and columns are exchanged. */
static bool is_on_side(const struct tiff_source *source) {
        return source->orientation >= ORIENTATION_LEFTTOP && source->orientation <= ORIENTATION_LEFTBOT;
}

/* The file's columns run from right to left, its rows from the bottom up. */
static bool is_mirrored(const struct tiff_source *source) {
        return source->orientation == ORIENTATION_TOPRIGHT || source->orientation == ORIENTATION_BOTRIGHT ||
               source->orientation == ORIENTATION_RIGHTBOT || source->orientation == ORIENTATION_LEFTBOT;
}

static bool is_upside_down(const struct tiff_source *source) {
        return source->orientation == ORIENTATION_BOTRIGHT || source->orientation == ORIENTATION_BOTLEFT ||
               source->orientation == ORIENTATION_RIGHTTOP || source->orientation == ORIENTATION_RIGHTBOT;
}

/* The box in the turned picture -> the box in the file. */
static struct box box_in_file(const struct tiff_source *source, const struct box *box) {
        struct box in_file = *box;

        if (is_on_side(source))
                in_file = (struct box){ box->y, box->x, box->height, box->width };
        if (tiff_is_turned(source) && is_mirrored(source))
                in_file.x = source->width - in_file.x - in_file.width;
        if (tiff_is_turned(source) && is_upside_down(source))
                in_file.y = source->height - in_file.y - in_file.height;
        return in_file;
}

/* Row y of the box in the turned picture, from the kept pixels of the box in the file. */
static void tiff_turn_row(const struct tiff_source *source, const struct box *in_file, const uint8_t *kept, uint32_t y,
                          uint8_t *rgb) {
        uint32_t width = is_on_side(source) ? in_file->height : in_file->width;

        for (uint32_t x = 0; x < width; x++, rgb += PIXEL_BYTES) {
                uint32_t from_x = is_on_side(source) ? y : x, from_y = is_on_side(source) ? x : y;

                if (is_mirrored(source))
                        from_x = in_file->width - 1 - from_x;
                if (is_upside_down(source))
                        from_y = in_file->height - 1 - from_y;
                memcpy(rgb, kept + ((size_t)from_y * in_file->width + from_x) * PIXEL_BYTES, PIXEL_BYTES);
        }
}

static int tiff_as(void *opaque, enum decode_as as, struct why *why) {
        struct tiff_source *source = opaque;

        return tiff_kind_as(&source->kind, as, why);
}

/* ---- the format ---------------------------------------------------------------------------------------------- */

static int tiff_open(void *opaque, const uint8_t *bytes, size_t n_bytes, struct image_info *ret_info, struct why *why) {
        struct tiff_source *source = opaque;
        int r = tiff_source_open(source, bytes, n_bytes, why);

        if (r < 0)
                return r;
        ret_info->width = is_on_side(source) ? source->height : source->width;
        ret_info->height = is_on_side(source) ? source->width : source->height;
        return 0;
}

static uint8_t *next_in_band(void *userdata) {
        return row_band_next(userdata);
}

static int push_to_band(void *userdata) {
        return row_band_push(userdata);
}

/* Rows that are kept. */
struct keeper {
        uint8_t *at; /* where the next one goes */
        size_t n_row;
};

static uint8_t *next_kept(void *userdata) {
        struct keeper *keeper = userdata;

        return keeper->at;
}

static int push_kept(void *userdata) {
        struct keeper *keeper = userdata;

        keeper->at += keeper->n_row;
        return 0;
}

static uint64_t tiff_kept_bytes(const struct tiff_source *source, const struct box *box) {
        return tiff_is_turned(source) ? (uint64_t)box->width * box->height * PIXEL_BYTES : 0;
}

static uint64_t work_bytes(const struct tiff_source *source, const struct box *box) {
        struct box in_file = box_in_file(source, box);

        return tiff_source_work(source, &in_file) + tiff_kept_bytes(source, box) + row_band_bytes(box->width);
}

static int read_turned(struct tiff_source *source, const struct box *box, uint8_t *kept, uint8_t *work,
                       struct row_band *band, struct why *why) {
        struct box in_file = box_in_file(source, box);
        struct keeper keeper = { .at = kept, .n_row = (size_t)in_file.width * PIXEL_BYTES };
        struct tiff_target target = { next_kept, push_kept, &keeper };
        int r = tiff_source_read(source, &in_file, work, &target, why);

        for (uint32_t y = 0; r == 0 && y < box->height; y++) {
                tiff_turn_row(source, &in_file, kept, y, row_band_next(band));
                r = row_band_push(band);
        }
        return r;
}

static int tiff_read_rows(void *opaque, const struct box *box, const struct row_sink *sink, struct scratch *scratch,
                          struct why *why) {
        struct tiff_source *source = opaque;
        struct row_band band;
        struct tiff_target target = { next_in_band, push_to_band, &band };
        uint8_t *kept, *work;
        int r;

        r = scratch_reserve(scratch, work_bytes(source, box), source->limits, why);
        if (r == 0) {
                kept = scratch->bytes + row_band_bytes(box->width);
                work = kept + tiff_kept_bytes(source, box);
                r = row_band_begin(&band, sink, scratch->bytes, box->width, why);
        }
        if (r == 0 && tiff_is_turned(source))
                r = read_turned(source, box, kept, work, &band, why);
        else if (r == 0)
                r = tiff_source_read(source, box, work, &target, why);
        if (r == 0)
                r = row_band_end(&band);
        tiff_source_close(source);
        return r;
}

static uint64_t tiff_need(const void *opaque, const struct box *box) {
        return work_bytes(opaque, box) + tiff_source_library(opaque);
}

/* ---- numbers ------------------------------------------------------------------------------------------------- */

static int tiff_open_bands(void *opaque, const uint8_t *bytes, size_t n_bytes, struct band_info *ret_info,
                           struct why *why) {
        struct tiff_source *source = opaque;
        int r = tiff_bands_open(source, bytes, n_bytes, why);

        if (r == 0)
                *ret_info = (struct band_info){ .width = source->width,
                                                .height = source->height,
                                                .n_bands = source->kind.n_samples,
                                                .dtype = source->dtype };
        return r;
}

static int tiff_read_bands(void *opaque, uint8_t *out, size_t stride, struct scratch *scratch, struct why *why) {
        struct tiff_source *source = opaque;
        int r = scratch_reserve(scratch, source->n_unit, source->limits, why);

        if (r == 0)
                r = tiff_bands_read(source, scratch->bytes, out, stride, why);
        tiff_source_close(source);
        return r;
}

static uint64_t tiff_need_bands(const void *opaque) {
        const struct tiff_source *source = opaque;

        return source->n_unit + tiff_source_library(source);
}

const struct picture_format format_tiff = {
        .name = "TIFF",
        .probe = tiff_probe,
        .state_new = tiff_state_new,
        .state_free = tiff_state_free,
        .open = tiff_open,
        .read_rows = tiff_read_rows,
        .need = tiff_need,
        .as = tiff_as,
        .open_bands = tiff_open_bands,
        .read_bands = tiff_read_bands,
        .need_bands = tiff_need_bands,
};
