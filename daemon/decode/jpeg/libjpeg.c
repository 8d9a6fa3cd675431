/* decode/jpeg/libjpeg.c: JPEG through libjpeg-turbo, with the library's defaults (accurate integer DCT, smooth
 * upsampling), which are Pillow's.
 *
 * Where the two could differ: Pillow refuses data that end before the last row, so the source manager below fails where
 * libjpeg's own would invent an end; behind the last row an end is accepted, but not a wrong marker. Damage inside the
 * entropy-coded data is a warning for both. CMYK and YCCK have no
 * way to RGB in libjpeg; Pillow's arithmetic for it is in cmyk_to_rgb(). */
#include "daemon/decode/format.h"

#include "daemon/base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#define ROWS_AT_ONCE 16u /* rows offered to the library a call; it fills one or two, more costs nothing */

struct jpeg_state {
        struct jpeg_decompress_struct jpeg; /* of one picture: a used one would lend its tables to a damaged file */
        struct jpeg_error_mgr errors;
        struct jpeg_source_mgr source;
        struct jpeg_progress_mgr progress;
        const struct decode_limits *limits; /* the decoder's */
        bool may_end;                       /* all rows were read: the data may end here */
        jmp_buf give_up;                    /* where error_exit() goes; set by each entry point */
        int error;                          /* negative errno that goes with the message */
        char message[JMSG_LENGTH_MAX];
};

static struct jpeg_state *state_of(j_common_ptr jpeg) {
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

static _Noreturn void give_up(struct jpeg_state *state, int error) {
        state->error = error;
        longjmp(state->give_up, 1);
}

static void on_error(j_common_ptr jpeg) {
        struct jpeg_state *state = state_of(jpeg);

        jpeg->err->format_message(jpeg, state->message);
        give_up(state, errno_of(jpeg->err->msg_code));
}

/* Warnings: the data are damaged but something was decoded. Accepted, as Pillow accepts it. */
static void on_message(j_common_ptr jpeg, int level) {
        if (level < 0)
                jpeg->err->num_warnings++;
}

static void on_output(j_common_ptr jpeg) {
        (void)jpeg;
}

/* Called between parts of a scan while a file of several scans is absorbed. */
static void on_progress(j_common_ptr jpeg) {
        struct jpeg_state *state = state_of(jpeg);

        if (state->jpeg.input_scan_number > 0 && (uint32_t)state->jpeg.input_scan_number > state->limits->max_scans) {
                snprintf(state->message, sizeof(state->message), "more than %" PRIu32 " scans, which is the limit",
                         state->limits->max_scans);
                give_up(state, -EFBIG);
        }
}

static void source_begin(j_decompress_ptr jpeg) {
        (void)jpeg;
}

/* All bytes were there from the start: whoever asks for more reads a file that was cut. */
static boolean source_fill(j_decompress_ptr jpeg) {
        struct jpeg_state *state = jpeg->client_data;

        if (state->may_end)
                return FALSE;
        snprintf(state->message, sizeof(state->message), "the data end before the picture does");
        give_up(state, -EBADMSG);
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

static bool jpeg_probe(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

static void jpeg_state_free(void *opaque) {
        struct jpeg_state *state = opaque;

        jpeg_destroy_decompress(&state->jpeg); /* takes a zeroed and a destroyed one */
        free(state);
}

static int jpeg_state_new(const struct decode_limits *limits, void **ret_state) {
        struct jpeg_state *state = calloc(1, sizeof(*state));

        if (!state)
                return -ENOMEM;
        state->limits = limits;
        state->jpeg.err = jpeg_std_error(&state->errors);
        state->errors.error_exit = on_error;
        state->errors.emit_message = on_message;
        state->errors.output_message = on_output;
        state->jpeg.client_data = state;
        state->source = (struct jpeg_source_mgr){
                .init_source = source_begin,
                .fill_input_buffer = source_fill,
                .skip_input_data = source_skip,
                .resync_to_restart = jpeg_resync_to_restart,
                .term_source = source_end,
        };
        state->progress.progress_monitor = on_progress;
        *ret_state = state;
        return 0;
}

/* ---- header -------------------------------------------------------------------------------------------------- */

static int fail(struct jpeg_state *state, struct why *why) {
        jpeg_destroy_decompress(&state->jpeg);
        return why_set(why, state->error, "JPEG: %s", state->message);
}

/* Files of several scans are absorbed whole before the first row: two bytes a coefficient. */
static uint64_t coefficient_bytes(struct jpeg_decompress_struct *jpeg) {
        uint64_t n_bytes = 0;

        if (!jpeg_has_multiple_scans(jpeg))
                return 0;
        for (int i = 0; i < jpeg->num_components; i++) {
                const jpeg_component_info *component = &jpeg->comp_info[i];

                n_bytes += (uint64_t)(component->width_in_blocks + (JDIMENSION)component->h_samp_factor) *
                           (component->height_in_blocks + (JDIMENSION)component->v_samp_factor) * sizeof(JBLOCK);
        }
        return n_bytes;
}

static int check_header(struct jpeg_state *state, struct why *why) {
        struct jpeg_decompress_struct *jpeg = &state->jpeg;
        uint64_t n_bytes;
        int r;

        if (jpeg->num_components != 1 && jpeg->num_components != 3 && jpeg->num_components != 4)
                return why_set(why, -ENOTSUP, "JPEG: %d colour components; 1, 3 and 4 are handled",
                               jpeg->num_components);

        r = check_pixels(state->limits, jpeg->image_width, jpeg->image_height, why);
        if (r < 0)
                return r;

        n_bytes = coefficient_bytes(jpeg);
        if (n_bytes > state->limits->max_scratch_bytes)
                return why_set(why, -EFBIG,
                               "JPEG: a file of several scans that needs %" PRIu64
                               " bytes of scratch memory; the limit is %" PRIu64 " bytes",
                               n_bytes, state->limits->max_scratch_bytes);
        return 0;
}

static int jpeg_open(void *opaque, const uint8_t *bytes, size_t n_bytes, struct image_info *ret_info, struct why *why) {
        struct jpeg_state *state = opaque;
        int r;

        jpeg_destroy_decompress(&state->jpeg); /* the picture before may have been opened and not read */
        if (setjmp(state->give_up))
                return fail(state, why);

        jpeg_create_decompress(&state->jpeg); /* keeps err and client_data */
        state->jpeg.src = &state->source;
        state->jpeg.progress = &state->progress;
        state->may_end = false;
        state->source.next_input_byte = bytes;
        state->source.bytes_in_buffer = n_bytes;
        jpeg_read_header(&state->jpeg, TRUE);

        r = check_header(state, why);
        if (r < 0) {
                jpeg_destroy_decompress(&state->jpeg);
                return r;
        }
        ret_info->width = state->jpeg.image_width;
        ret_info->height = state->jpeg.image_height;
        return 0;
}

/* ---- pixels -------------------------------------------------------------------------------------------------- */

/* a * b / 255, rounded, as Pillow writes it. */
static unsigned multiply_255(unsigned a, unsigned b) {
        unsigned product = a * b + 128;

        return ((product >> 8) + product) >> 8;
}

/* Pillow takes every file of four components for one of Adobe's, which store ink upside down: with or without Adobe's
 * marker, CMYK or YCCK (9.4 to 13.0). So a component of 255 means no ink. */
static void cmyk_to_rgb(const uint8_t *cmyk, uint8_t *rgb, uint32_t width) {
        for (uint32_t x = 0; x < width; x++, cmyk += 4, rgb += PIXEL_BYTES) {
                unsigned white = cmyk[3];

                for (unsigned c = 0; c < 3; c++)
                        rgb[c] = (uint8_t)(white - multiply_255(255u - cmyk[c], white));
        }
}

static void read_cmyk(struct jpeg_state *state, uint8_t *out, size_t stride) {
        struct jpeg_decompress_struct *jpeg = &state->jpeg;
        JSAMPARRAY row;

        jpeg->out_color_space = JCS_CMYK;
        jpeg_start_decompress(jpeg);
        row = jpeg->mem->alloc_sarray((j_common_ptr)jpeg, JPOOL_IMAGE, jpeg->output_width * 4, 1);
        while (jpeg->output_scanline < jpeg->output_height) {
                uint8_t *to = out + jpeg->output_scanline * stride;

                jpeg_read_scanlines(jpeg, row, 1);
                cmyk_to_rgb(row[0], to, jpeg->output_width);
        }
}

static void read_rgb(struct jpeg_state *state, uint8_t *out, size_t stride) {
        struct jpeg_decompress_struct *jpeg = &state->jpeg;
        JSAMPROW rows[ROWS_AT_ONCE];

        jpeg->out_color_space = JCS_RGB;
        jpeg_start_decompress(jpeg);
        while (jpeg->output_scanline < jpeg->output_height) {
                JDIMENSION n = jpeg->output_height - jpeg->output_scanline;

                if (n > ROWS_AT_ONCE)
                        n = ROWS_AT_ONCE;
                for (JDIMENSION i = 0; i < n; i++)
                        rows[i] = out + (jpeg->output_scanline + i) * stride;
                jpeg_read_scanlines(jpeg, rows, n);
        }
}

static int jpeg_read(void *opaque, uint8_t *out, size_t stride, struct scratch *work, struct why *why) {
        struct jpeg_state *state = opaque;

        (void)work;
        if (setjmp(state->give_up))
                return fail(state, why);

        if (state->jpeg.num_components == 4)
                read_cmyk(state, out, stride);
        else
                read_rgb(state, out, stride);
        state->may_end = true;
        jpeg_finish_decompress(&state->jpeg);
        jpeg_destroy_decompress(&state->jpeg);
        return 0;
}

const struct format format_jpeg = {
        .name = "JPEG",
        .probe = jpeg_probe,
        .state_new = jpeg_state_new,
        .state_free = jpeg_state_free,
        .open = jpeg_open,
        .read = jpeg_read,
};
