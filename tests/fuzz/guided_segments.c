/* Any bytes as the segmentations of a sample: what is drawn lies within its plane and is 0 or 1, and as many masks are
 * drawn or passed over as were counted. The first two bytes are the size of the picture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/masks/segments.h"
#include "tests/fuzz/input.h"

#define N_DRAWN_MAX 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: a segmentation %s\n", what);
        abort();
}

static bool is_clean(const uint8_t *bytes, size_t n, uint8_t most) {
        for (size_t i = 0; i < n; i++)
                if (bytes[i] > most)
                        return false;
        return true;
}

/* Draws all, or every other one. Exact sizes: the sanitizer sees each byte beside them. */
static void draw_all(const struct input *text, uint64_t n, uint32_t width, uint32_t height, bool is_every) {
        uint8_t *plane = malloc((size_t)width * height), *columns = malloc(width);
        struct segments segments;
        struct why why = { 0 };
        int r = 0;

        memset(columns, 0xee, width);
        segments_begin(&segments, text->at, text->n, width, height, columns);
        for (uint64_t i = 0; i < n && r == 0; i++) {
                if (!is_every && i % 2 == 0) {
                        if (segments_skip(&segments, &why) < 0)
                                find("was counted and cannot be passed over");
                        continue;
                }
                memset(plane, 0xee, (size_t)width * height);
                r = segments_draw(&segments, plane, &why);
                if (r == 0 && !is_clean(plane, (size_t)width * height, 1))
                        find("has pixels that are neither 0 nor 1");
                if (r == 0 && !is_clean(columns, width, 0))
                        find("leaves something to the next one");
                if (r < 0 && !why.text[0])
                        find("was refused without a word");
        }
        free(plane);
        free(columns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        struct input input = { data, n_bytes };
        uint32_t width = 1 + input_below(&input, 40), height = 1 + input_below(&input, 40);
        struct why why = { 0 };
        uint64_t n = 0;

        if (segments_count(input.at, input.n, &n, &why) < 0) {
                if (!why.text[0])
                        find("was refused without a word");
                return 0;
        }
        n = n < N_DRAWN_MAX ? n : N_DRAWN_MAX;
        draw_all(&input, n, width, height, true);
        draw_all(&input, n, width, height, false);
        return 0;
}
