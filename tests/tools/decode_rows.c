/* tools/decode_rows.c: the JPEGs below a folder, transcoded into rows and decoded by the kernels of a GPU, run on the
 * CPU; then the middle half of each, resized to 224 x 224. Both are compared with what the daemon makes of the source.
 *
 *      decode_rows FOLDER
 *
 * Prints as "key value" lines how many files there were, how many could not be transcoded, how many have other pixels,
 * and how long the kernels took for one. Exit status 1 if there are such, or nothing to compare. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/resize/resample.h"
#include "daemon/decode/decode.h"
#include "daemon/staging/prepare/transcoder.h"
#include "proto/base/clock.h"
#include "tests/support/rows_decoding.h"

#define SIDE 224u

static struct {
        struct decoder *decoder;
        struct resizer *resizer;
        struct transcoder *transcoder;
        unsigned n_files, n_left, n_other;
        uint64_t kernels_ns;
} run;

static bool never(void *userdata) {
        (void)userdata;
        return false;
}

static uint8_t *read_file(const char *path, size_t *ret_n_bytes) {
        FILE *file = fopen(path, "rb");
        uint8_t *bytes = NULL;
        long n = -1;

        if (file && fseek(file, 0, SEEK_END) == 0 && (n = ftell(file)) >= 0) {
                rewind(file);
                bytes = malloc((size_t)n + 1);
                if (fread(bytes, 1, (size_t)n, file) != (size_t)n)
                        n = -1;
        }
        if (n < 0) {
                perror(path);
                exit(1);
        }
        fclose(file);
        *ret_n_bytes = (size_t)n;
        return bytes;
}

static void resize(const uint8_t *pixels, struct box box, uint32_t width, uint8_t *out) {
        struct resize_job job = { SIDE, SIDE, { 0, 0, SIDE, SIDE }, RESIZE_BILINEAR, false };
        struct view source = { pixels + ((size_t)box.y * width + box.x) * PIXEL_BYTES, (size_t)width * PIXEL_BYTES,
                               box.width, box.height };

        if (resizer_begin(run.resizer, box.width, box.height, NULL, &job, out, SIDE * PIXEL_BYTES, NULL) < 0)
                exit(1);
        resizer_feed(run.resizer, &source);
}

/* Both ways to the same pixels. */
static bool is_same(const uint8_t *source, size_t n_source, const uint8_t *rows, size_t n_rows) {
        struct rows_decoding decoding = { 0 }, middle = { 0 };
        static uint8_t expected[SIDE * SIDE * PIXEL_BYTES];
        struct image_info info;
        struct box whole = { 0 }, box;
        uint8_t *pixels;
        uint64_t begin;
        bool same;

        if (decoder_open(run.decoder, source, n_source, &info, NULL) < 0)
                return false;
        whole.width = info.width;
        whole.height = info.height;
        box = (struct box){ info.width / 4, info.height / 4, (info.width + 1) / 2, (info.height + 1) / 2 };
        pixels = malloc((size_t)info.width * info.height * PIXEL_BYTES);
        same = decoder_read_into(run.decoder, pixels, (size_t)info.width * PIXEL_BYTES, NULL) == 0 &&
               rows_decoding_open(&decoding, rows, n_rows) == 0 && rows_decoding_open(&middle, rows, n_rows) == 0 &&
               rows_decoding_run(&decoding, whole) == DLK_JPEG_GOOD &&
               memcmp(pixels, decoding.picture.pixels, (size_t)info.width * info.height * PIXEL_BYTES) == 0;
        if (same) {
                begin = clock_now_ns();
                same = rows_decoding_run(&middle, box) == DLK_JPEG_GOOD;
                rows_decoding_resize(&middle, SIDE, SIDE, RESIZE_BILINEAR);
                run.kernels_ns += clock_now_ns() - begin;
                resize(pixels, box, info.width, expected);
                same = same && memcmp(expected, middle.picture.out, sizeof(expected)) == 0;
        }
        rows_decoding_free(&decoding);
        rows_decoding_free(&middle);
        free(pixels);
        return same;
}

static int on_file(const char *path, const struct stat *status, int kind, struct FTW *place) {
        struct block rows = { 0 };
        size_t n_bytes, n_rows;
        uint8_t *bytes;
        uint64_t need;

        (void)status;
        (void)place;
        if (kind != FTW_F || !strstr(path, ".jpg"))
                return 0;
        bytes = read_file(path, &n_bytes);
        run.n_files++;
        if (transcoder_open(run.transcoder, bytes, n_bytes, &need, NULL) != 0 ||
            transcoder_make(run.transcoder, never, NULL, &rows, &n_rows, NULL) != 0)
                run.n_left++;
        else if (!is_same(bytes, n_bytes, rows.bytes, n_rows))
                run.n_other++;
        block_free(&rows);
        free(bytes);
        return 0;
}

int main(int argc, char **argv) {
        struct decode_limits limits = DECODE_LIMITS_DEFAULT;

        if (argc != 2) {
                fputs("usage: decode_rows FOLDER\n", stderr);
                return 64;
        }
        if (decoder_new(&limits, DECODE_JPEG_AUTO, &run.decoder, NULL) < 0 ||
            resizer_new(RESIZE_CODE_BEST, &run.resizer, NULL) < 0 || transcoder_new(&run.transcoder) < 0 ||
            nftw(argv[1], on_file, 16, FTW_PHYS) != 0)
                return 1;
        printf("files %u\nleft %u\nother %u\n", run.n_files, run.n_left, run.n_other);
        if (run.n_files > run.n_left)
                printf("microseconds %llu\n", (unsigned long long)run.kernels_ns / 1000 / (run.n_files - run.n_left));
        decoder_free(run.decoder);
        resizer_free(run.resizer);
        transcoder_free(run.transcoder);
        return run.n_other > 0 || run.n_files == run.n_left;
}
