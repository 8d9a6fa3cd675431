#include "daemon/staging/prepare/encoder.h"

#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jerror.h>
#include <jpeglib.h>

#define FIRST_BYTES (64u << 10) /* of the file's memory: most pictures fit, the others double it */

struct encoder {
        struct jpeg_compress_struct jpeg; /* of one picture: standard tables are only set where there are none, so a
                                           * used one would code with the tables of the picture before */
        struct jpeg_error_mgr errors;
        struct jpeg_destination_mgr destination;
        struct block file;
        size_t n_bytes;  /* of the file; set at its end */
        jmp_buf give_up; /* where on_error() goes; set by each entry point */
        int error;       /* negative errno that goes with the message */
        char message[JMSG_LENGTH_MAX];
};

/* ---- callbacks of the library -------------------------------------------------------------------------------- */

static void on_error(j_common_ptr jpeg) {
        struct encoder *encoder = jpeg->client_data;

        jpeg->err->format_message(jpeg, encoder->message);
        encoder->error = jpeg->err->msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
        longjmp(encoder->give_up, 1);
}

static void on_message(j_common_ptr jpeg, int level) {
        (void)jpeg;
        (void)level;
}

static void on_output(j_common_ptr jpeg) {
        (void)jpeg;
}

/* Room for more; `n_bytes` are there. */
static void make_room(struct encoder *encoder, size_t n_bytes) {
        if (block_grow(&encoder->file, n_bytes ? 2 * n_bytes : FIRST_BYTES) < 0) {
                snprintf(encoder->message, sizeof(encoder->message), "no memory for a file of more than %zu bytes",
                         n_bytes);
                encoder->error = -ENOMEM;
                longjmp(encoder->give_up, 1);
        }
        encoder->destination.next_output_byte = encoder->file.bytes + n_bytes;
        encoder->destination.free_in_buffer = encoder->file.capacity - n_bytes;
}

static void destination_begin(j_compress_ptr jpeg) {
        make_room(jpeg->client_data, 0);
}

/* The library calls it when all of the room is used, whatever the manager says. */
static boolean destination_empty(j_compress_ptr jpeg) {
        struct encoder *encoder = jpeg->client_data;

        make_room(encoder, encoder->file.capacity);
        return TRUE;
}

static void destination_end(j_compress_ptr jpeg) {
        struct encoder *encoder = jpeg->client_data;

        encoder->n_bytes = encoder->file.capacity - encoder->destination.free_in_buffer;
}

/* ---- state --------------------------------------------------------------------------------------------------- */

int encoder_new(struct encoder **ret_encoder) {
        struct encoder *encoder = calloc(1, sizeof(*encoder));

        if (!encoder)
                return -ENOMEM;
        encoder->jpeg.err = jpeg_std_error(&encoder->errors);
        encoder->errors.error_exit = on_error;
        encoder->errors.emit_message = on_message;
        encoder->errors.output_message = on_output;
        encoder->jpeg.client_data = encoder;
        encoder->destination = (struct jpeg_destination_mgr){
                .init_destination = destination_begin,
                .empty_output_buffer = destination_empty,
                .term_destination = destination_end,
        };
        *ret_encoder = encoder;
        return 0;
}

void encoder_forget(struct encoder *encoder) {
        jpeg_destroy_compress(&encoder->jpeg); /* takes a zeroed and a destroyed one */
        block_free(&encoder->file);
}

void encoder_free(struct encoder *encoder) {
        if (!encoder)
                return;
        encoder_forget(encoder);
        free(encoder);
}

static int fail(struct encoder *encoder, struct why *why) {
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
                return fail(encoder, why);

        jpeg_create_compress(jpeg); /* keeps err and client_data */
        jpeg->dest = &encoder->destination;
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
                return fail(encoder, why);
        for (uint32_t y = 0; y < rows->height; y++) {
                JSAMPROW row = (JSAMPROW)(uintptr_t)(rows->pixels + y * rows->stride); /* only read */

                jpeg_write_scanlines(jpeg, &row, 1);
        }
        return 0;
}

int encoder_end(struct encoder *encoder, struct block *ret_file, size_t *ret_n_bytes, struct why *why) {
        if (setjmp(encoder->give_up))
                return fail(encoder, why);
        jpeg_finish_compress(&encoder->jpeg);
        jpeg_destroy_compress(&encoder->jpeg);
        block_shrink(&encoder->file, encoder->n_bytes);
        *ret_file = encoder->file;
        *ret_n_bytes = encoder->n_bytes;
        encoder->file = (struct block){};
        return 0;
}

/* Two rows of MCUs of samples and coefficients; of the file two bytes a pixel, which noise at quality 100 does not
 * reach. */
uint64_t encoder_need(uint32_t width, uint32_t height) {
        uint64_t n_pixels = (uint64_t)(width + 16) * (height + 16);
        uint64_t n_waiting = is_optimised(width, height) ? 3 * n_pixels : 0;

        return n_waiting + 2 * n_pixels + (uint64_t)width * 16 * 12 + FIRST_BYTES;
}
