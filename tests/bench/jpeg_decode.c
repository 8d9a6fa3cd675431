/* jpeg decode: what a photo costs: whole, and a box as random_resized_crop draws it, through libjpeg-turbo and through
 * our own decoder.   jpeg_decode FOLDER [ROUNDS] [optimise]
 *
 * All ways go over all photos once a round, in turn; the median of the rounds counts. libjpeg-turbo's boxes are cut
 * with its own crop and skip. "optimise": every photo gets Huffman tables of its own first. Prints one JSON object. */
#include <ftw.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#include "daemon/decode/jpeg/baseline.h"

#define MAX_PHOTOS 1000
#define MAX_ROUNDS 100

static struct photo {
        unsigned char *bytes;
        unsigned long n_bytes;
        struct box box, whole;
} photos[MAX_PHOTOS];

static size_t n_photos;
static uint8_t *pixels; /* of one photo */
static struct baseline *baseline;
static unsigned n_handed_over;

static double cpu_us(void) {
        struct timespec now;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* ---- photos ---------------------------------------------------------------------------------------------------- */

static double uniform(double from, double to) {
        return from + (to - from) * (double)random() / 2147483648.0;
}

static struct box draw_box(uint32_t width, uint32_t height) {
        for (;;) {
                double area = uniform(0.08, 1) * width * height, ratio = exp(uniform(log(3.0 / 4), log(4.0 / 3)));
                uint32_t w = (uint32_t)lround(sqrt(area * ratio)), h = (uint32_t)lround(sqrt(area / ratio));

                if (w > 0 && h > 0 && w <= width && h <= height)
                        return (struct box){ (uint32_t)random() % (width - w + 1),
                                             (uint32_t)random() % (height - h + 1), w, h };
        }
}

/* The same coefficients with codes made for them. */
static void optimise(struct photo *photo) {
        struct jpeg_decompress_struct from;
        struct jpeg_compress_struct to;
        struct jpeg_error_mgr errors;
        unsigned char *bytes = NULL;
        unsigned long n_bytes = 0;

        from.err = to.err = jpeg_std_error(&errors);
        jpeg_create_decompress(&from);
        jpeg_create_compress(&to);
        jpeg_mem_src(&from, photo->bytes, photo->n_bytes);
        jpeg_mem_dest(&to, &bytes, &n_bytes);
        jpeg_read_header(&from, TRUE);
        jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&from);
        jpeg_copy_critical_parameters(&from, &to);
        to.optimize_coding = TRUE;
        jpeg_write_coefficients(&to, coefficients);
        jpeg_finish_compress(&to);
        jpeg_finish_decompress(&from);
        jpeg_destroy_compress(&to);
        jpeg_destroy_decompress(&from);
        free(photo->bytes);
        photo->bytes = bytes;
        photo->n_bytes = n_bytes;
}

static int add_photo(const char *path, const struct stat *status, int type, struct FTW *where) {
        struct photo *photo = &photos[n_photos];
        uint32_t width, height;
        FILE *file;

        (void)where;
        if (type != FTW_F || n_photos == MAX_PHOTOS || !strstr(path, ".jp"))
                return 0;
        file = fopen(path, "rb");
        photo->n_bytes = (unsigned long)status->st_size;
        photo->bytes = malloc(photo->n_bytes);
        if (!file || fread(photo->bytes, 1, photo->n_bytes, file) != photo->n_bytes)
                exit(1);
        fclose(file);
        if (baseline_open(baseline, photo->bytes, photo->n_bytes, &width, &height) == 0) {
                photo->whole = (struct box){ 0, 0, width, height };
                photo->box = draw_box(width, height);
                n_photos++;
        }
        return 0;
}

/* ---- ways to decode -------------------------------------------------------------------------------------------- */

static void through_libjpeg(const struct photo *photo, const struct box *box) {
        struct jpeg_decompress_struct jpeg;
        struct jpeg_error_mgr errors;
        JDIMENSION x = box->x, width = box->width;
        uint8_t *to = pixels;

        jpeg.err = jpeg_std_error(&errors);
        jpeg_create_decompress(&jpeg);
        jpeg_mem_src(&jpeg, photo->bytes, photo->n_bytes);
        jpeg_read_header(&jpeg, TRUE);
        jpeg.out_color_space = JCS_RGB;
        jpeg_start_decompress(&jpeg);
        if (width < jpeg.output_width)
                jpeg_crop_scanline(&jpeg, &x, &width);
        if (box->y > 0)
                jpeg_skip_scanlines(&jpeg, box->y);
        while (jpeg.output_scanline < box->y + box->height) {
                jpeg_read_scanlines(&jpeg, &to, 1);
                to += (size_t)width * 3;
        }
        jpeg_abort_decompress(&jpeg);
        jpeg_destroy_decompress(&jpeg);
}

static int begin(void *userdata, struct why *why) {
        (void)why;
        *(uint8_t **)userdata = pixels;
        return 0;
}

static int take(void *userdata, const struct view *rows, struct why *why) {
        uint8_t **to = userdata;

        (void)why;
        for (uint32_t y = 0; y < rows->height; y++, *to += (size_t)rows->width * 3)
                memcpy(*to, rows->pixels + y * rows->stride, (size_t)rows->width * 3);
        return 0;
}

static void through_baseline(const struct photo *photo, const struct box *box) {
        uint8_t *to = pixels;
        struct row_sink sink = { begin, take, &to };
        uint32_t width, height;

        if (baseline_open(baseline, photo->bytes, photo->n_bytes, &width, &height) != 0 ||
            baseline_read(baseline, box, &sink, NULL) != 0)
                n_handed_over++;
}

static const struct way {
        const char *name;
        void (*decode)(const struct photo *photo, const struct box *box);
        bool is_whole;
} WAYS[] = {
        { "libjpeg_whole", through_libjpeg, true },
        { "baseline_whole", through_baseline, true },
        { "libjpeg_box", through_libjpeg, false },
        { "baseline_box", through_baseline, false },
};

#define N_WAYS (sizeof(WAYS) / sizeof(WAYS[0]))

/* ---- rounds ---------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
        static double us[N_WAYS][MAX_ROUNDS];
        size_t n_rounds = argc > 2 ? (size_t)atoi(argv[2]) : 5, n_pixels = 0;

        if (argc < 2 || n_rounds < 1 || n_rounds > MAX_ROUNDS || baseline_new(BASELINE_CODE_BEST, &baseline) < 0 ||
            nftw(argv[1], add_photo, 16, FTW_PHYS) != 0 || n_photos == 0)
                return 1;
        for (size_t i = 0; i < n_photos; i++) {
                size_t n = (size_t)(photos[i].whole.width + 64) * photos[i].whole.height;

                n_pixels = n > n_pixels ? n : n_pixels;
                if (argc > 3)
                        optimise(&photos[i]);
        }
        pixels = malloc(n_pixels * 3);

        for (size_t round = 0; round < n_rounds; round++)
                for (size_t w = 0; w < N_WAYS; w++) {
                        double start = cpu_us();

                        for (size_t i = 0; i < n_photos; i++)
                                WAYS[w].decode(&photos[i], WAYS[w].is_whole ? &photos[i].whole : &photos[i].box);
                        us[w][round] = (cpu_us() - start) / (double)n_photos;
                }

        printf("{\"photos\": %zu, \"handed_over\": %u", n_photos, n_handed_over);
        for (size_t w = 0; w < N_WAYS; w++) {
                qsort(us[w], n_rounds, sizeof(double), by_value);
                printf(", \"%s_us\": %.1f", WAYS[w].name, us[w][n_rounds / 2]);
        }
        printf("}\n");
        baseline_free(baseline);
        return 0;
}
