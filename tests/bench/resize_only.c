/* resize_only IMAGES [CODE [FILTER [ROWS]]]: what resizing alone costs.
 *
 * The boxes of random_resized_crop(224) over one made-up picture of 500 x 375 pixels, the usual size of a photograph in
 * ImageNet, no decoding in between. CODE is best or one of the forms; with ROWS a picture is fed in groups of that many
 * rows, as a decoder does. Prints CPU microseconds a picture and a hash of all pixels: equal hashes are equal pixels.
 * Under `valgrind --tool=callgrind` it says where the instructions go. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/augment/recipe.h"

#define WIDTH  500u
#define HEIGHT 375u
#define SIDE   224u

static void fail(const char *text) {
        fprintf(stderr, "resize_only: %s\n", text);
        exit(1);
}

static enum resize_code find_code(const char *name) {
        for (unsigned i = 0; i < N_RESIZE_CODES; i++)
                if (strcmp(RESIZE_CODE_NAMES[i], name) == 0)
                        return i;
        fail("no such code");
        return RESIZE_CODE_BEST;
}

/* Instructions of an instruction set beyond the scalar form stand after it, and a CPU has one of them at most. */
static enum resize_code best_code(void) {
        for (unsigned i = N_RESIZE_CODES - 1; i > RESIZE_CODE_SCALAR; i--) {
                struct resizer *resizer;

                if (resizer_new((enum resize_code)i, &resizer, NULL) == 0) {
                        resizer_free(resizer);
                        return i;
                }
        }
        return RESIZE_CODE_SCALAR;
}

static double cpu_us(void) {
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Edges and slopes: the values do not matter to the time, but they do to the hash. */
static uint8_t *make_picture(void) {
        uint8_t *pixels = malloc(WIDTH * HEIGHT * PIXEL_BYTES);

        if (!pixels)
                fail("no memory");
        for (uint32_t i = 0; i < WIDTH * HEIGHT * PIXEL_BYTES; i++)
                pixels[i] = (uint8_t)(i / 7 + i * (i / 1500) + (i >> 9));
        return pixels;
}

static uint64_t hash(uint64_t value, const uint8_t *bytes, size_t n_bytes) {
        uint64_t word;

        for (size_t i = 0; i + sizeof(word) <= n_bytes; i += sizeof(word)) {
                memcpy(&word, bytes + i, sizeof(word));
                value = (value ^ word) * 0x100000001b3ull;
        }
        return value ^ value >> 32;
}

static void resize(struct resizer *resizer, const struct view *view, const struct resize_job *job, uint32_t n_rows,
                   uint8_t *out) {
        struct view portion = *view;
        struct why why = {};

        if (resizer_begin(resizer, view->width, view->height, NULL, job, out, SIDE * PIXEL_BYTES, &why) < 0)
                fail(why.text);
        for (uint32_t y = 0; y < view->height; y += portion.height) {
                portion.pixels = view->pixels + y * view->stride;
                portion.height = n_rows > 0 && n_rows < view->height - y ? n_rows : view->height - y;
                resizer_feed(resizer, &portion);
        }
}

/* Resizes box number `sample`; returns the time it took. */
static double resize_one(struct resizer *resizer, const struct recipe *recipe, const uint8_t *pixels, uint64_t sample,
                         uint32_t n_rows, uint8_t *out) {
        struct geometry geometry;
        struct why why = {};
        double begin;

        if (recipe_plan(recipe, WIDTH, HEIGHT, 0, 0, sample, &geometry, &why) < 0)
                fail(why.text);
        const struct stage *stage = &geometry.stages[0];
        const struct box *box = &stage->source;
        struct view view = { pixels + (box->y * WIDTH + box->x) * PIXEL_BYTES, WIDTH * PIXEL_BYTES, box->width,
                             box->height };
        struct resize_job job = { stage->width, stage->height, stage->window, stage->filter, stage->flip };

        begin = cpu_us();
        resize(resizer, &view, &job, n_rows, out);
        return cpu_us() - begin;
}

int main(int argc, char **argv) {
        uint64_t n_images = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, value = 0xcbf29ce484222325ull;
        static uint8_t out[SIDE * SIDE * PIXEL_BYTES];
        uint32_t n_rows = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0;
        uint8_t *pixels = make_picture();
        enum resize_code code;
        struct resizer *resizer;
        struct recipe *recipe;
        struct why why = {};
        char text[100];
        double us = 0;

        if (argc > 5 || n_images == 0) {
                fprintf(stderr, "usage: resize_only IMAGES [best|scalar|avx2|neon [FILTER [ROWS]]]\n");
                return 2;
        }
        code = find_code(argc > 2 ? argv[2] : "best");
        code = code == RESIZE_CODE_BEST ? best_code() : code;
        snprintf(text, sizeof(text), "random_resized_crop(224, interpolation=%s) hflip(0.5)",
                 argc > 3 ? argv[3] : "bilinear");
        if (recipe_parse(text, &recipe, &why) < 0 || resizer_new(code, &resizer, &why) < 0)
                fail(why.text);
        for (uint64_t i = 0; i < n_images; i++) {
                us += resize_one(resizer, recipe, pixels, i, n_rows, out);
                value = hash(value, out, sizeof(out));
        }
        printf("{\"code\": \"%s\", \"us_per_image\": %.1f, \"hash\": \"%016llx\"}\n", RESIZE_CODE_NAMES[code],
               us / (double)n_images, (unsigned long long)value);
        resizer_free(resizer);
        recipe_free(recipe);
        free(pixels);
        return 0;
}
