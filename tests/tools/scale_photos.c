/* scale_photos OUT_DIR SIDE SOURCE...: a picture of SIDE pixels on its long side out of each SOURCE.
 *
 * All sizes show the same, 4:3, 4:2:0, quality 85: what differs is how many pixels it is shown with. A source smaller
 * than SIDE is enlarged, and its files are smoother than a camera's. Writes OUT_DIR/class/0.jpg and so on; OUT_DIR must
 * not be there, and appears when it is whole. */

#include "daemon/augment/resize/resample.h"
#include "daemon/decode/decode.h"
#include "proto/base/cleanup.h"
#include "tests/support/pixels.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jpeglib.h>

#define SIDE_MAX 20000u
#define QUALITY  85

static int fail(const char *what, const char *why) {
        fprintf(stderr, "scale_photos: %s: %s\n", what, why);
        return EXIT_FAILURE;
}

static uint8_t *read_file(const char *path, size_t *ret_n_bytes) {
        FILE *file = fopen(path, "re");
        uint8_t *bytes = NULL;
        struct stat status;

        if (file && fstat(fileno(file), &status) == 0 && (bytes = malloc((size_t)status.st_size + 1)))
                *ret_n_bytes = fread(bytes, 1, (size_t)status.st_size, file);
        if (file)
                fclose(file);
        return bytes;
}

/* Its pixels, the caller's to free, and the largest 4:3 piece around its middle. */
static int load(struct decoder *decoder, const char *path, uint8_t **ret_pixels, struct view *ret_view,
                struct why *why) {
        _cleanup_(freep) uint8_t *pixels = NULL, *bytes = NULL;
        struct image_info info;
        size_t n_bytes, stride;
        int r;

        bytes = read_file(path, &n_bytes);
        if (!bytes)
                return why_errno(why, -errno, "it cannot be read");
        r = decoder_open(decoder, bytes, n_bytes, &info, why);
        if (r < 0)
                return r;
        stride = (size_t)info.width * PIXEL_BYTES;
        pixels = malloc(stride * info.height);
        if (!pixels)
                return why_set(why, -ENOMEM, "no memory for its pixels");
        r = decoder_read_into(decoder, pixels, stride, why);
        if (r < 0)
                return r;
        decoder_close(decoder);

        *ret_view = (struct view){ .stride = stride, .width = info.width, .height = info.height };
        if ((uint64_t)info.width * 3 > (uint64_t)info.height * 4)
                ret_view->width = info.height * 4 / 3;
        else
                ret_view->height = info.width * 3 / 4;
        ret_view->pixels = pixels + (info.height - ret_view->height) / 2 * stride +
                           (size_t)(info.width - ret_view->width) / 2 * PIXEL_BYTES;
        *ret_pixels = TAKE_PTR(pixels);
        return 0;
}

/* Whatever libjpeg does not like ends the program: its input is our own pixels. */
static int save(const char *path, const uint8_t *pixels, uint32_t width, uint32_t height) {
        struct jpeg_compress_struct jpeg;
        struct jpeg_error_mgr errors;
        FILE *file = fopen(path, "wxe");

        if (!file)
                return -errno;
        jpeg.err = jpeg_std_error(&errors);
        jpeg_create_compress(&jpeg);
        jpeg_stdio_dest(&jpeg, file);
        jpeg.image_width = width;
        jpeg.image_height = height;
        jpeg.input_components = PIXEL_BYTES;
        jpeg.in_color_space = JCS_RGB;
        jpeg_set_defaults(&jpeg);
        jpeg_set_quality(&jpeg, QUALITY, TRUE);
        jpeg_start_compress(&jpeg, TRUE);
        while (jpeg.next_scanline < height) {
                JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + (size_t)jpeg.next_scanline * width * PIXEL_BYTES);

                jpeg_write_scanlines(&jpeg, &row, 1);
        }
        jpeg_finish_compress(&jpeg);
        jpeg_destroy_compress(&jpeg);
        return fclose(file) == 0 ? 0 : -errno;
}

/* `out` has room for the whole output. */
static int scale(struct decoder *decoder, struct resizer *resizer, const char *source, const char *target,
                 uint32_t side, uint8_t *out, struct why *why) {
        uint32_t height = (side * 3 + 2) / 4;
        struct resize_job job = {
                .width = side,
                .height = height,
                .window = { .width = side, .height = height },
                .filter = RESIZE_BICUBIC,
        };
        _cleanup_(freep) uint8_t *pixels = NULL;
        struct view view;
        int r;

        r = load(decoder, source, &pixels, &view, why);
        if (r >= 0)
                r = resizer_run(resizer, &view, &job, out, (size_t)side * PIXEL_BYTES, why);
        if (r < 0)
                return r;
        r = save(target, out, side, height);
        return r < 0 ? why_errno(why, r, "%s cannot be written", target) : 0;
}

int main(int argc, char **argv) {
        _cleanup_(decoder_freep) struct decoder *decoder = NULL;
        _cleanup_(resizer_freep) struct resizer *resizer = NULL;
        unsigned long side = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
        _cleanup_(freep) uint8_t *out = NULL;
        char folder[PATH_MAX], path[PATH_MAX + 64];
        struct why why = { 0 };

        if (side < 4 || side > SIDE_MAX) {
                fprintf(stderr, "usage: scale_photos OUT_DIR SIDE SOURCE...\n");
                return 2;
        }
        out = malloc(side * side * PIXEL_BYTES);
        if (!out || decoder_new(&DECODE_LIMITS_DEFAULT, DECODE_JPEG_AUTO, &decoder, &why) < 0 ||
            resizer_new(RESIZE_CODE_BEST, &resizer, &why) < 0)
                return fail("cannot start", out ? why.text : strerror(ENOMEM));
        if (snprintf(folder, sizeof(folder), "%s.new-%d", argv[1], (int)getpid()) >= (int)sizeof(folder))
                return fail(argv[1], strerror(ENAMETOOLONG));
        snprintf(path, sizeof(path), "%s/class", folder);
        if (mkdir(folder, 0755) < 0 || mkdir(path, 0755) < 0)
                return fail(folder, strerror(errno));
        for (int i = 3; i < argc; i++) {
                snprintf(path, sizeof(path), "%s/class/%d.jpg", folder, i - 3);
                if (scale(decoder, resizer, argv[i], path, (uint32_t)side, out, &why) < 0)
                        return fail(argv[i], why.text);
        }
        return rename(folder, argv[1]) < 0 ? fail(argv[1], strerror(errno)) : EXIT_SUCCESS;
}
