/* unit/test_decode_memory.c: what BMP, PNM, TIFF and GIF cost: no more memory than decoder_need() says, the libraries'
 * included, and a bomb costs a few rows. */
#include "daemon/decode/decode.h"
#include "proto/base/cleanup.h"
#include "tests/support/pixels.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <gif_lib.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tiffio.h>
#include <unistd.h>

#define WIDTH  3000u
#define HEIGHT 500u
#define SLACK  (1u << 20) /* bytes: scratch grows in steps of 256 KiB, and the libraries' own few hundred KiB */

struct file {
        uint8_t *bytes;
        size_t n_bytes;
};

/* ---- files --------------------------------------------------------------------------------------------------- */

static struct file read_memfd(int fd) {
        off_t n = lseek(fd, 0, SEEK_END);
        struct file file = { .bytes = malloc((size_t)n), .n_bytes = (size_t)n };

        ck_assert_int_eq(pread(fd, file.bytes, (size_t)n, 0), n);
        close(fd);
        return file;
}

/* One byte that differs from pixel to pixel, but packs. */
static uint8_t pixel_at(size_t i) {
        return (uint8_t)(i * i >> 7);
}

struct tiff_form {
        uint16_t compression, photometric, planar, bits, n_samples, orientation;
        bool is_tiled;
        uint32_t width, height;
};

static struct file make_tiff(struct tiff_form form) {
        int fd = memfd_create("tiff", MFD_CLOEXEC);
        TIFF *tiff = TIFFFdOpen(dup(fd), "tiff", "w");
        uint16_t n_planes = form.planar == PLANARCONFIG_SEPARATE ? form.n_samples : 1;
        tmsize_t n_unit;
        uint8_t *unit;

        TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, form.width);
        TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, form.height);
        TIFFSetField(tiff, TIFFTAG_COMPRESSION, form.compression);
        TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, form.photometric);
        TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, form.planar);
        TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, form.bits);
        TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, form.n_samples);
        TIFFSetField(tiff, TIFFTAG_ORIENTATION, form.orientation);
        if (form.is_tiled) {
                TIFFSetField(tiff, TIFFTAG_TILEWIDTH, 256u);
                TIFFSetField(tiff, TIFFTAG_TILELENGTH, 256u);
        } else {
                TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, form.height); /* one strip */
        }
        n_unit = form.is_tiled ? TIFFTileSize(tiff) : TIFFScanlineSize(tiff);
        unit = malloc((size_t)n_unit);
        for (tmsize_t i = 0; i < n_unit; i++)
                unit[i] = form.bits == 1 ? 0 : pixel_at((size_t)i);
        for (uint16_t plane = 0; plane < n_planes; plane++)
                if (form.is_tiled)
                        for (uint32_t y = 0; y < form.height; y += 256)
                                for (uint32_t x = 0; x < form.width; x += 256)
                                        ck_assert_int_eq(TIFFWriteTile(tiff, unit, x, y, 0, plane), n_unit);
                else
                        for (uint32_t y = 0; y < form.height; y++)
                                ck_assert_int_eq(TIFFWriteScanline(tiff, unit, y, plane), 1);
        free(unit);
        TIFFClose(tiff);
        return read_memfd(fd);
}

static struct file tiff_strip(void) {
        return make_tiff((struct tiff_form){ COMPRESSION_LZW, PHOTOMETRIC_RGB, PLANARCONFIG_CONTIG, 8, 3, 1, false,
                                             WIDTH, HEIGHT });
}

static struct file tiff_plain(void) {
        return make_tiff((struct tiff_form){ COMPRESSION_NONE, PHOTOMETRIC_RGB, PLANARCONFIG_CONTIG, 8, 3, 1, false,
                                             WIDTH, HEIGHT });
}

static struct file tiff_jpeg(void) {
        return make_tiff((struct tiff_form){ COMPRESSION_JPEG, PHOTOMETRIC_RGB, PLANARCONFIG_CONTIG, 8, 3, 1, false,
                                             WIDTH, HEIGHT });
}

static struct file tiff_tiles(void) {
        return make_tiff((struct tiff_form){ COMPRESSION_ADOBE_DEFLATE, PHOTOMETRIC_SEPARATED, PLANARCONFIG_CONTIG, 16,
                                             4, 1, true, WIDTH, HEIGHT });
}

static struct file tiff_planes(void) {
        return make_tiff((struct tiff_form){ COMPRESSION_LZW, PHOTOMETRIC_RGB, PLANARCONFIG_SEPARATE, 8, 3, 1, false,
                                             WIDTH, HEIGHT });
}

static struct file tiff_tile_planes(void) {
        return make_tiff((struct tiff_form){ COMPRESSION_PACKBITS, PHOTOMETRIC_RGB, PLANARCONFIG_SEPARATE, 8, 3, 1,
                                             true, WIDTH, HEIGHT });
}

static struct file tiff_on_its_side(void) {
        return make_tiff((struct tiff_form){ COMPRESSION_LZW, PHOTOMETRIC_RGB, PLANARCONFIG_CONTIG, 8, 3, 6, false,
                                             WIDTH, HEIGHT });
}

static int write_gif(GifFileType *gif, const GifByteType *bytes, int n_bytes) {
        return (int)write(*(int *)gif->UserData, bytes, (size_t)n_bytes);
}

static struct file make_gif(bool is_interlaced) {
        int fd = memfd_create("gif", MFD_CLOEXEC), error;
        GifFileType *gif = EGifOpen(&fd, write_gif, &error);
        ColorMapObject *colors = GifMakeMapObject(256, NULL);
        uint8_t row[WIDTH];

        ck_assert_int_eq(EGifPutScreenDesc(gif, WIDTH, HEIGHT, 8, 0, colors), GIF_OK);
        ck_assert_int_eq(EGifPutImageDesc(gif, 0, 0, WIDTH, HEIGHT, is_interlaced, NULL), GIF_OK);
        for (size_t i = 0; i < WIDTH; i++)
                row[i] = pixel_at(i);
        for (uint32_t y = 0; y < HEIGHT; y++)
                ck_assert_int_eq(EGifPutLine(gif, row, WIDTH), GIF_OK);
        EGifCloseFile(gif, NULL);
        GifFreeMapObject(colors);
        return read_memfd(fd);
}

static struct file gif_plain(void) {
        return make_gif(false);
}

static struct file gif_interlaced(void) {
        return make_gif(true);
}

static void put_le32(uint8_t *bytes, uint32_t value) {
        for (unsigned i = 0; i < 4; i++)
                bytes[i] = (uint8_t)(value >> 8 * i);
}

/* A palette of 256 colours and `n_pixels` bytes of pixels, all 0. */
static struct file make_bmp(uint32_t width, uint32_t height, uint32_t compression, size_t n_pixels) {
        struct file file = { .n_bytes = 54 + 1024 + n_pixels };

        file.bytes = calloc(1, file.n_bytes);
        memcpy(file.bytes, "BM", 2);
        put_le32(file.bytes + 10, 54 + 1024);
        put_le32(file.bytes + 14, 40);
        put_le32(file.bytes + 18, width);
        put_le32(file.bytes + 22, height);
        file.bytes[26] = 1;
        file.bytes[28] = 8;
        put_le32(file.bytes + 30, compression);
        memset(file.bytes + 54, 7, 4);
        return file;
}

static struct file bmp_plain(void) {
        return make_bmp(WIDTH, HEIGHT, 0, (size_t)WIDTH * HEIGHT);
}

static struct file bmp_runs(void) {
        return make_bmp(WIDTH, HEIGHT, 1, 0);
}

/* Run-length coded rows of 255 pixels at a time. */
static struct file bmp_runs_whole(void) {
        size_t n_row = (WIDTH + 254) / 255 * 2 + 2;
        struct file file = make_bmp(WIDTH, HEIGHT, 1, n_row * HEIGHT);

        for (uint32_t y = 0; y < HEIGHT; y++)
                for (size_t i = 0; i + 2 < n_row; i += 2)
                        file.bytes[54 + 1024 + y * n_row + i] = 255;
        return file;
}

static struct file ppm_deep(void) {
        char head[64];
        size_t n_head = (size_t)snprintf(head, sizeof(head), "P6 %u %u 65535 ", WIDTH, HEIGHT);
        struct file file = { .n_bytes = n_head + (size_t)WIDTH * HEIGHT * 6 };

        file.bytes = calloc(1, file.n_bytes);
        memcpy(file.bytes, head, n_head);
        return file;
}

static struct {
        const char *name;
        struct file (*make)(void);
} const KINDS[] = {
        { "tiff_strip", tiff_strip },
        { "tiff_plain", tiff_plain },
        { "tiff_jpeg", tiff_jpeg },
        { "tiff_tiles", tiff_tiles },
        { "tiff_planes", tiff_planes },
        { "tiff_tile_planes", tiff_tile_planes },
        { "tiff_on_its_side", tiff_on_its_side },
        { "gif_plain", gif_plain },
        { "gif_interlaced", gif_interlaced },
        { "bmp_plain", bmp_plain },
        { "bmp_runs", bmp_runs_whole },
        { "ppm_deep", ppm_deep },
};

/* ---- what they cost ------------------------------------------------------------------------------------------ */

/* A sink that looks at the heap while the decoder has all of its memory. */
struct watcher {
        size_t n_most; /* bytes */
};

static size_t heap_bytes(void) {
        struct mallinfo2 info = mallinfo2(); /* zeros under a sanitizer */

        return info.uordblks + info.hblkhd;
}

static int watch_begin(void *userdata, struct why *why) {
        return 0;
}

static int watch_take(void *userdata, const struct view *rows, struct why *why) {
        struct watcher *watcher = userdata;
        size_t n = heap_bytes();

        if (n > watcher->n_most)
                watcher->n_most = n;
        return 0;
}

static void check_need(const char *name, const struct file *file, struct box box) {
        struct watcher watcher = { 0 };
        struct row_sink sink = { watch_begin, watch_take, &watcher };
        struct decoder *decoder = NULL;
        struct image_info info;
        struct why why = {};
        size_t n_before;
        uint64_t need;

        n_before = heap_bytes();
        ck_assert_int_eq(decoder_new(&DECODE_LIMITS_DEFAULT, DECODE_JPEG_AUTO, &decoder, NULL), 0);
        ck_assert_msg(decoder_open(decoder, file->bytes, file->n_bytes, &info, &why) == 0, "%s: %s", name, why.text);
        if (box.width == 0)
                box = (struct box){ 0, 0, info.width, info.height };
        need = decoder_need(decoder, &box);
        ck_assert_msg(decoder_read_rows(decoder, &box, &sink, &why) == 0, "%s: %s", name, why.text);
        ck_assert_msg(watcher.n_most <= n_before + need + SLACK, "%s: %zu bytes held, %zu were said", name,
                      watcher.n_most - n_before, (size_t)need);
        ck_assert_uint_le(decoder_scratch_bytes(decoder), need + SLACK);
        decoder_free(decoder);
}

START_TEST(no_more_memory_is_held_than_was_said_before_the_first_row) {
        for (size_t i = 0; i < ARRAY_SIZE(KINDS); i++) {
                struct file file = KINDS[i].make();

                check_need(KINDS[i].name, &file, (struct box){ 0 });
                check_need(KINDS[i].name, &file, (struct box){ 100, 90, 50, 60 });
                free(file.bytes);
        }
}
END_TEST

/* Reads the last pixels; returns the scratch that it took. */
static size_t cost_of_corner(const struct file *file, uint32_t side) {
        struct decoder *decoder = NULL;
        struct image_info info;
        struct view view;
        struct why why = {};
        size_t n;

        ck_assert_int_eq(decoder_new(&DECODE_LIMITS_DEFAULT, DECODE_JPEG_AUTO, &decoder, NULL), 0);
        ck_assert_msg(decoder_open(decoder, file->bytes, file->n_bytes, &info, &why) == 0, "%s", why.text);
        ck_assert_msg(decoder_read(decoder, &(struct box){ side - 9, side - 5, 9, 5 }, &view, &why) == 0, "%s",
                      why.text);
        n = decoder_scratch_bytes(decoder);
        decoder_free(decoder);
        return n;
}

START_TEST(a_bomb_in_a_tiff_takes_a_few_rows_of_memory) {
        const uint32_t side = 12000;
        struct file file = make_tiff((struct tiff_form){ COMPRESSION_ADOBE_DEFLATE, PHOTOMETRIC_MINISBLACK,
                                                         PLANARCONFIG_CONTIG, 1, 1, 1, false, side, side });

        ck_assert_uint_lt(file.n_bytes, 100000);
        ck_assert_uint_lt(cost_of_corner(&file, side), 1u << 20);
        free(file.bytes);
}
END_TEST

START_TEST(a_run_length_coded_bmp_that_is_too_short_is_refused_before_memory_is_reserved) {
        struct file file = bmp_runs();
        struct decoder *decoder = NULL;
        struct image_info info;
        struct why why = {};

        ck_assert_int_eq(decoder_new(&DECODE_LIMITS_DEFAULT, DECODE_JPEG_AUTO, &decoder, NULL), 0);
        ck_assert_int_eq(decoder_open(decoder, file.bytes, file.n_bytes, &info, &why), -EBADMSG);
        ck_assert_msg(strstr(why.text, "ends within its pixels") != NULL, "%s", why.text);
        ck_assert_uint_eq(decoder_scratch_bytes(decoder), 0);
        decoder_free(decoder);
        free(file.bytes);
}
END_TEST

/* A limit on scratch is refused with both numbers, whichever reader needs it. */
START_TEST(what_needs_more_scratch_than_the_limit_is_refused_with_both_numbers) {
        struct decode_limits limits = DECODE_LIMITS_DEFAULT;

        limits.max_scratch_bytes = 2000;
        for (size_t i = 0; i < ARRAY_SIZE(KINDS); i++) {
                struct file file = KINDS[i].make();
                struct decoder *decoder = NULL;
                struct image_info info;
                struct view view;
                struct why why = {};
                int r;

                ck_assert_int_eq(decoder_new(&limits, DECODE_JPEG_AUTO, &decoder, NULL), 0);
                r = decoder_open(decoder, file.bytes, file.n_bytes, &info, &why);
                if (r == 0)
                        r = decoder_read(decoder, &(struct box){ 0, 0, info.width, 2 }, &view, &why);
                ck_assert_msg(r == -EFBIG || (r == -EBADMSG && strstr(why.text, "TIFF:")), "%s: %d", KINDS[i].name, r);
                ck_assert_msg(strstr(why.text, "2000"), "%s: %s", KINDS[i].name, why.text);
                ck_assert_uint_lt(decoder_scratch_bytes(decoder), 4000);
                decoder_free(decoder);
                free(file.bytes);
        }
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "memory", no_more_memory_is_held_than_was_said_before_the_first_row, 0 },
                { "memory", a_bomb_in_a_tiff_takes_a_few_rows_of_memory, 0 },
                { "memory", a_run_length_coded_bmp_that_is_too_short_is_refused_before_memory_is_reserved, 0 },
                { "memory", what_needs_more_scratch_than_the_limit_is_refused_with_both_numbers, 0 },
        };

        return suite_run("decode_memory", rows, ARRAY_SIZE(rows));
}
