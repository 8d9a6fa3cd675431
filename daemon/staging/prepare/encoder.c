#include "daemon/staging/prepare/encoder.h"

#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jerror.h>
#include <jpeglib.h>

#include "daemon/staging/prepare/jpeg_file.h"

struct encoder {
        struct jpeg_compress_struct jpeg; /* of one picture: standard tables are only set where there are none, so a
                                           * used one would code with the tables of the picture before */
        struct jpeg_error_mgr errors;
        struct jpeg_file file;
        jmp_buf give_up; /* where encoder_on_error() goes; set by each entry point */
        int error;       /* negative errno that goes with the message */
        char message[JMSG_LENGTH_MAX];
};

/* ---- callbacks of the library -------------------------------------------------------------------------------- */

static void encoder_on_error(j_common_ptr jpeg) {
        struct encoder *encoder = jpeg->client_data;

        jpeg->err->format_message(jpeg, encoder->message);
        encoder->error = jpeg->err->msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
        longjmp(encoder->give_up, 1);
}

static void encoder_on_message(j_common_ptr jpeg, int level) {
        (void)jpeg;
        (void)level;
}

static void encoder_on_output(j_common_ptr jpeg) {
        (void)jpeg;
}

static void encoder_on_no_room(j_compress_ptr jpeg, int error, size_t n_bytes) {
        struct encoder *encoder = jpeg->client_data;

        snprintf(encoder->message, sizeof(encoder->message), "no memory for a file of more than %zu bytes", n_bytes);
        encoder->error = error;
        longjmp(encoder->give_up, 1);
}

/* ---- state --------------------------------------------------------------------------------------------------- */

int encoder_new(struct encoder **ret_encoder) {
        struct encoder *encoder = calloc(1, sizeof(*encoder));

        if (!encoder)
                return -ENOMEM;
        encoder->jpeg.err = jpeg_std_error(&encoder->errors);
        encoder->errors.error_exit = encoder_on_error;
        encoder->errors.emit_message = encoder_on_message;
        encoder->errors.output_message = encoder_on_output;
        encoder->jpeg.client_data = encoder;
        jpeg_file_init(&encoder->file, SIZE_MAX, encoder_on_no_room);
        *ret_encoder = encoder;
        return 0;
}

void encoder_forget(struct encoder *encoder) {
        jpeg_destroy_compress(&encoder->jpeg); /* takes a zeroed and a destroyed one */
        jpeg_file_forget(&encoder->file);
}

void encoder_free(struct encoder *encoder) {
        if (!encoder)
                return;
        encoder_forget(encoder);
        free(encoder);
}

static int encoder_fail(struct encoder *encoder, struct why *why) {
        encoder_forget(encoder);
        return why_set(why, encoder->error, "encoding as JPEG: %s", encoder->message);
}

/* ---- a picture ----------------------------------------------------------------------------------------------- */

static bool is_optimised(uint32_t width, uint32_t height) {
        return (uint64_t)width * height <= ENCODER_OPTIMISED_PIXELS;
}

int encoder_begin(struct encoder *encoder, uint32_t width, uint32_t height, uint32_t quality, struct why *why) {
        struct jpeg_compress_struct *jpeg = &encoder->jpeg;

        assert(width > 0 && width <= ENCODER_SIDE_MAX && height > 0 && height <= ENCODER_SIDE_MAX);
        encoder_forget(encoder);
        if (setjmp(encoder->give_up))
                return encoder_fail(encoder, why);

        jpeg_create_compress(jpeg); /* keeps err and client_data */
        jpeg->dest = &encoder->file.manager;
        jpeg->image_width = width;
        jpeg->image_height = height;
        jpeg->input_components = PIXEL_BYTES;
        jpeg->in_color_space = JCS_RGB;
        jpeg_set_defaults(jpeg);
        jpeg_set_quality(jpeg, (int)quality, TRUE);
        jpeg->optimize_coding = is_optimised(width, height);
        jpeg_start_compress(jpeg, TRUE);
        return 0;
}

int encoder_feed(struct encoder *encoder, const struct view *rows, struct why *why) {
        struct jpeg_compress_struct *jpeg = &encoder->jpeg;

        assert(rows->width == jpeg->image_width && rows->height <= jpeg->image_height - jpeg->next_scanline);
        if (setjmp(encoder->give_up))
                return encoder_fail(encoder, why);
        for (uint32_t y = 0; y < rows->height; y++) {
                JSAMPROW row = (JSAMPROW)(uintptr_t)(rows->pixels + y * rows->stride); /* only read */

                jpeg_write_scanlines(jpeg, &row, 1);
        }
        return 0;
}

int encoder_end(struct encoder *encoder, struct block *ret_file, size_t *ret_n_bytes, struct why *why) {
        if (setjmp(encoder->give_up))
                return encoder_fail(encoder, why);
        jpeg_finish_compress(&encoder->jpeg);
        jpeg_destroy_compress(&encoder->jpeg);
        jpeg_file_take(&encoder->file, ret_file, ret_n_bytes);
        return 0;
}

/* Two rows of MCUs of samples and coefficients; of the file two bytes a pixel, which noise at quality 100 does not
 * reach. */
uint64_t encoder_need(uint32_t width, uint32_t height) {
        uint64_t n_pixels = (uint64_t)(width + 16) * (height + 16);
        uint64_t n_waiting = is_optimised(width, height) ? 3 * n_pixels : 0;

        return n_waiting + 2 * n_pixels + (uint64_t)width * 16 * 12 + JPEG_FILE_FIRST_BYTES;
}
