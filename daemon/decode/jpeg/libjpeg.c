/* decode/jpeg/libjpeg.c: JPEG through libjpeg-turbo.
 *
 * Possible differences from Pillow: Pillow refuses data that end before the last row, so the source manager below fails
 * where libjpeg's own would insert an end; after the last row an end is accepted, but not a wrong marker. Damage inside
 * the entropy-coded data is a warning for both. libjpeg cannot convert CMYK and YCCK to RGB; cmyk_to_rgb() has Pillow's
 * arithmetic for it.
 *
 * Rows above the box are skipped and columns beside it left out, as far as that changes no pixel: smooth upsampling
 * reads a neighbour on each side, which MARGIN_BLOCKS adds. Two kinds of files are decoded whole: those without an end,
 * because a file that was cut is refused wherever the box lies, and progressive ones that lack coefficients, which the
 * library replaces by smoothing over a wide area. */
#include "daemon/decode/jpeg/libjpeg.h"

#include "proto/base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#define BAND_ROWS     16u /* rows at once: few enough to fit the first-level cache, as many as an MCU has */
#define MARGIN_BLOCKS 1u  /* MCUs beside the box that are computed too */

struct libjpeg {
        struct jpeg_decompress_struct jpeg; /* of one picture: a used one would lend its tables to a damaged file */
        struct jpeg_error_mgr errors;
        struct jpeg_source_mgr source;
        struct jpeg_progress_mgr progress;
        const struct decode_limits *limits; /* the decoder's */
        uint64_t need_bytes;                /* the most memory that reading may take */
        bool has_end;                       /* there is an end marker after the header */
        bool may_end;                       /* all rows were read: from now on the data may end */
        jmp_buf give_up;                    /* target of error_exit(); set by each entry point */
        int error;                          /* negative errno that goes with the message */
        char message[JMSG_LENGTH_MAX];
};

static struct libjpeg *libjpeg_state_of(j_common_ptr jpeg) {
        return jpeg->client_data;
}

/* ---- callbacks of the library -------------------------------------------------------------------------------- */

static int errno_of(int code) {
        switch (code) {
        case JERR_OUT_OF_MEMORY:
                return -ENOMEM;
        case JERR_BAD_PRECISION:
        case JERR_SOF_UNSUPPORTED:
        case JERR_CONVERSION_NOTIMPL:
        case JERR_FRACT_SAMPLE_NOTIMPL:
        case JERR_CCIR601_NOTIMPL:
                return -ENOTSUP;
        case JERR_NO_BACKING_STORE:
                return -EFBIG;
        default:
                return -EBADMSG;
        }
}

static _Noreturn void libjpeg_give_up(struct libjpeg *state, int error) {
        state->error = error;
        longjmp(state->give_up, 1);
}

static void libjpeg_on_error(j_common_ptr jpeg) {
        struct libjpeg *state = libjpeg_state_of(jpeg);

        jpeg->err->format_message(jpeg, state->message);
        libjpeg_give_up(state, errno_of(jpeg->err->msg_code));
}

/* Warnings: the data are damaged but something was decoded. Accepted, as in Pillow. */
static void libjpeg_on_message(j_common_ptr jpeg, int level) {
        if (level < 0)
                jpeg->err->num_warnings++;
}

static void libjpeg_on_output(j_common_ptr jpeg) {
        (void)jpeg;
}

/* Each scan costs as much work as the whole picture but only a few bytes in the file, so large pictures may have fewer
 * scans. */
static uint32_t scans_allowed(const struct libjpeg *state) {
        uint64_t n_pixels = (uint64_t)state->jpeg.image_width * state->jpeg.image_height;
        uint64_t n = n_pixels > 0 ? DECODE_SCAN_PIXELS / n_pixels : 0;

        n = n > DECODE_SCANS_ANY ? n : DECODE_SCANS_ANY;
        return n < state->limits->max_scans ? (uint32_t)n : state->limits->max_scans;
}

/* Called between parts of a scan while a file of several scans is read. */
static void libjpeg_on_progress(j_common_ptr jpeg) {
        struct libjpeg *state = libjpeg_state_of(jpeg);
        uint32_t n_allowed = scans_allowed(state);

        if (state->jpeg.input_scan_number > 0 && (uint32_t)state->jpeg.input_scan_number > n_allowed) {
                snprintf(state->message, sizeof(state->message),
                         "more than %" PRIu32 " scans, which is the limit for %ux%u pixels", n_allowed,
                         state->jpeg.image_width, state->jpeg.image_height);
                libjpeg_give_up(state, -EFBIG);
        }
}

static void source_begin(j_decompress_ptr jpeg) {
        (void)jpeg;
}

/* All bytes were there from the start: a request for more means that the file was cut. */
static boolean source_fill(j_decompress_ptr jpeg) {
        struct libjpeg *state = jpeg->client_data;

        if (state->may_end)
                return FALSE;
        snprintf(state->message, sizeof(state->message), "the data end before the picture does");
        libjpeg_give_up(state, -EBADMSG);
}

static void source_skip(j_decompress_ptr jpeg, long n_bytes) {
        struct jpeg_source_mgr *source = jpeg->src;
        size_t n = n_bytes > 0 ? (size_t)n_bytes : 0;

        if (n > source->bytes_in_buffer)
                n = source->bytes_in_buffer;
        source->next_input_byte += n;
        source->bytes_in_buffer -= n;
}

static void source_end(j_decompress_ptr jpeg) {
        (void)jpeg;
}

/* ---- state --------------------------------------------------------------------------------------------------- */

void libjpeg_free(struct libjpeg *state) {
        if (!state)
                return;
        jpeg_destroy_decompress(&state->jpeg); /* takes a zeroed and a destroyed one */
        free(state);
}

int libjpeg_new(const struct decode_limits *limits, struct libjpeg **ret_libjpeg) {
        struct libjpeg *state = calloc(1, sizeof(*state));

        if (!state)
                return -ENOMEM;
        state->limits = limits;
        state->jpeg.err = jpeg_std_error(&state->errors);
        state->errors.error_exit = libjpeg_on_error;
        state->errors.emit_message = libjpeg_on_message;
        state->errors.output_message = libjpeg_on_output;
        state->jpeg.client_data = state;
        state->source = (struct jpeg_source_mgr){
                .init_source = source_begin,
                .fill_input_buffer = source_fill,
                .skip_input_data = source_skip,
                .resync_to_restart = jpeg_resync_to_restart,
                .term_source = source_end,
        };
        state->progress.progress_monitor = libjpeg_on_progress;
        *ret_libjpeg = state;
        return 0;
}

/* ---- header -------------------------------------------------------------------------------------------------- */

static int libjpeg_fail(struct libjpeg *state, struct why *why) {
        jpeg_destroy_decompress(&state->jpeg);
        return why_set(why, state->error, "JPEG: %s", state->message);
}

/* Files of several scans are read completely before the first row: two bytes for each coefficient. */
static uint64_t libjpeg_coefficient_bytes(const struct jpeg_decompress_struct *jpeg) {
        uint64_t n_bytes = 0;

        for (int i = 0; i < jpeg->num_components; i++) {
                const jpeg_component_info *component = &jpeg->comp_info[i];

                n_bytes += (uint64_t)(component->width_in_blocks + (JDIMENSION)component->h_samp_factor) *
                           (component->height_in_blocks + (JDIMENSION)component->v_samp_factor) * sizeof(JBLOCK);
        }
        return n_bytes;
}

/* Two MCU rows of samples, the rows that one of them is upsampled to, the band, and what several scans take. */
static uint64_t libjpeg_count_need(const struct jpeg_decompress_struct *jpeg, uint64_t scans_bytes) {
        uint64_t n_bytes = scans_bytes + (uint64_t)jpeg->image_width * BAND_ROWS * 4;

        for (int i = 0; i < jpeg->num_components; i++) {
                const jpeg_component_info *component = &jpeg->comp_info[i];

                n_bytes += 2ull * component->width_in_blocks * (unsigned)component->v_samp_factor * DCTSIZE2;
                n_bytes += (uint64_t)jpeg->image_width * MAX_SAMP_FACTOR;
        }
        return n_bytes;
}

static int libjpeg_check_header(struct libjpeg *state, struct why *why) {
        struct jpeg_decompress_struct *jpeg = &state->jpeg;
        uint64_t n_bytes;
        int r;

        if (jpeg->num_components != 1 && jpeg->num_components != 3 && jpeg->num_components != 4)
                return why_set(why, -ENOTSUP, "JPEG: %d colour components; 1, 3 and 4 are handled",
                               jpeg->num_components);

        r = check_pixels(state->limits, jpeg->image_width, jpeg->image_height, why);
        if (r < 0)
                return r;

        n_bytes = jpeg_has_multiple_scans(jpeg) ? libjpeg_coefficient_bytes(jpeg) : 0;
        if (n_bytes > state->limits->max_scratch_bytes)
                return why_set(why, -EFBIG,
                               "JPEG: a file of several scans that needs %" PRIu64
                               " bytes of scratch memory; the limit is %" PRIu64 " bytes",
                               n_bytes, state->limits->max_scratch_bytes);
        state->need_bytes = libjpeg_count_need(jpeg, n_bytes);
        return 0;
}

/* Is there an end marker anywhere in the rest of the file? Nearly always it is the last two bytes. */
static bool has_end_marker(const uint8_t *bytes, size_t n_bytes) {
        while (n_bytes >= 2) {
                const uint8_t *found = memrchr(bytes + 1, JPEG_EOI, n_bytes - 1);

                if (!found)
                        return false;
                if (found[-1] == 0xff)
                        return true;
                n_bytes = (size_t)(found - bytes);
        }
        return false;
}

int libjpeg_open(struct libjpeg *state, const uint8_t *bytes, size_t n_bytes, uint32_t *ret_width, uint32_t *ret_height,
                 struct why *why) {
        int r;

        jpeg_destroy_decompress(&state->jpeg); /* the picture before may have been opened but not read */
        if (setjmp(state->give_up))
                return libjpeg_fail(state, why);

        jpeg_create_decompress(&state->jpeg); /* keeps err and client_data */
        state->jpeg.src = &state->source;
        state->jpeg.progress = &state->progress;
        state->may_end = false;
        state->source.next_input_byte = bytes;
        state->source.bytes_in_buffer = n_bytes;
        jpeg_read_header(&state->jpeg, TRUE);

        r = libjpeg_check_header(state, why);
        if (r < 0) {
                jpeg_destroy_decompress(&state->jpeg);
                return r;
        }
        state->has_end = has_end_marker(state->source.next_input_byte, state->source.bytes_in_buffer);
        *ret_width = state->jpeg.image_width;
        *ret_height = state->jpeg.image_height;
        return 0;
}

bool libjpeg_is_grey(const struct libjpeg *state) {
        return state->jpeg.jpeg_color_space == JCS_GRAYSCALE;
}

uint64_t libjpeg_need(const struct libjpeg *state) {
        return state->need_bytes;
}

/* ---- which part of the picture ------------------------------------------------------------------------------- */

/* If a progressive file lacks coefficients, smoothing estimates them from the blocks around. That depends on the scans
 * in the file, so it is known only after all of them were read. */
static bool smooths_blocks(const struct jpeg_decompress_struct *jpeg) {
        if (!jpeg->coef_bits)
                return false;
        for (int i = 0; i < jpeg->num_components; i++)
                for (int k = 0; k < DCTSIZE2; k++)
                        if (jpeg->coef_bits[i][k] != 0) /* not known to the last bit */
                                return true;
        return false;
}

/* Leaves out what is to the left, to the right and above the box. Returns the column at which rows begin from now
 * on. */
static uint32_t crop(struct jpeg_decompress_struct *jpeg, const struct box *box) {
        JDIMENSION margin = MARGIN_BLOCKS * DCTSIZE * (JDIMENSION)jpeg->max_h_samp_factor;
        JDIMENSION left = box->x > margin ? box->x - margin : 0;
        JDIMENSION right = box->x + box->width + margin;
        JDIMENSION width = (right < jpeg->output_width ? right : jpeg->output_width) - left;

        if (width < jpeg->output_width)
                jpeg_crop_scanline(jpeg, &left, &width); /* moves left to the border of an MCU */
        if (box->y > 0)
                jpeg_skip_scanlines(jpeg, box->y);
        return left;
}

/* ---- pixels -------------------------------------------------------------------------------------------------- */

/* a * b / 255, rounded, as Pillow writes it. */
static unsigned libjpeg_multiply_255(unsigned a, unsigned b) {
        unsigned product = a * b + 128;

        return ((product >> 8) + product) >> 8;
}

/* Pillow assumes that every file of four components is Adobe's, which store ink inverted: with or without Adobe's
 * marker, CMYK or YCCK (9.4 to 13.0). So a component of 255 means no ink. */
static void cmyk_to_rgb(const uint8_t *cmyk, uint8_t *rgb, uint32_t width) {
        for (uint32_t x = 0; x < width; x++, cmyk += 4, rgb += PIXEL_BYTES) {
                unsigned white = cmyk[3];

                for (unsigned c = 0; c < 3; c++)
                        rgb[c] = (uint8_t)(white - libjpeg_multiply_255(255u - cmyk[c], white));
        }
}

/* The library returns one or two rows for each call. */
static void read_band(struct jpeg_decompress_struct *jpeg, JSAMPARRAY cmyk, uint8_t *band, size_t stride,
                      uint32_t n_rows) {
        JSAMPROW rows[BAND_ROWS];
        JDIMENSION n = 0;

        for (uint32_t i = 0; i < n_rows; i++)
                rows[i] = band + i * stride;
        while (n < n_rows) {
                if (cmyk) {
                        n += jpeg_read_scanlines(jpeg, cmyk, 1);
                        cmyk_to_rgb(cmyk[0], rows[n - 1], jpeg->output_width);
                } else {
                        n += jpeg_read_scanlines(jpeg, rows + n, n_rows - n);
                }
        }
}

/* Passes on those rows of a band that lie in the box; the band begins at row y and column `left`. */
static int libjpeg_hand_out(const struct box *box, uint32_t left, const uint8_t *band, size_t stride, uint32_t y,
                            uint32_t n_rows, const struct row_sink *sink, struct why *why) {
        uint32_t first = y < box->y ? box->y : y;
        uint32_t end = y + n_rows < box->y + box->height ? y + n_rows : box->y + box->height;
        struct view view = {
                .pixels = band + (first - y) * stride + (size_t)(box->x - left) * PIXEL_BYTES,
                .stride = stride,
                .width = box->width,
                .height = end - first,
        };

        return sink->take(sink->userdata, &view, why);
}

/* Decodes up to row `end`. Rows begin at column `left`. */
static int read_bands(struct libjpeg *state, const struct box *box, uint32_t left, uint32_t end,
                      const struct row_sink *sink, uint8_t *band, struct why *why) {
        struct jpeg_decompress_struct *jpeg = &state->jpeg;
        size_t stride = (size_t)jpeg->output_width * PIXEL_BYTES;
        JSAMPARRAY cmyk = NULL;
        int r = 0;

        if (jpeg->out_color_space == JCS_CMYK)
                cmyk = jpeg->mem->alloc_sarray((j_common_ptr)jpeg, JPOOL_IMAGE, jpeg->output_width * 4, 1);

        while (r == 0 && jpeg->output_scanline < end) {
                uint32_t y = jpeg->output_scanline;
                uint32_t n = end - y < BAND_ROWS ? end - y : BAND_ROWS;

                read_band(jpeg, cmyk, band, stride, n);
                if (y < box->y + box->height && y + n > box->y)
                        r = libjpeg_hand_out(box, left, band, stride, y, n, sink, why);
        }
        return r;
}

static int libjpeg_read_rows(struct libjpeg *state, const struct box *box, const struct row_sink *sink,
                             struct scratch *work, struct why *why) {
        struct jpeg_decompress_struct *jpeg = &state->jpeg;
        bool has_last_pixel = box->x + box->width == jpeg->image_width && box->y + box->height == jpeg->image_height;
        uint32_t left = 0, end = jpeg->image_height;
        bool is_whole = true; /* has all of it been decoded and checked? */
        int r;

        jpeg->out_color_space = jpeg->num_components == 4 ? JCS_CMYK : JCS_RGB;
        jpeg_start_decompress(jpeg); /* reads all of a file of several scans */
        if (state->has_end && !smooths_blocks(jpeg)) {
                is_whole = has_last_pixel;
                left = crop(jpeg, box);
                end = box->y + box->height;
        }

        r = scratch_reserve(work, (uint64_t)jpeg->output_width * PIXEL_BYTES * BAND_ROWS, state->limits, why);
        if (r == 0)
                r = sink->begin(sink->userdata, why);
        if (r == 0)
                r = read_bands(state, box, left, end, sink, work->bytes, why);
        if (r == 0 && is_whole) {
                state->may_end = true;
                jpeg_finish_decompress(jpeg);
        }
        return r;
}

int libjpeg_read(struct libjpeg *state, const struct box *box, const struct row_sink *sink, struct scratch *work,
                 struct why *why) {
        int r;

        if (setjmp(state->give_up))
                return libjpeg_fail(state, why);
        r = libjpeg_read_rows(state, box, sink, work, why);
        jpeg_destroy_decompress(&state->jpeg);
        return r;
}
