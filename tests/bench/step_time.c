/* step_time WIDTH HEIGHT PIXELS: what steps of a pipeline cost, without a daemon and without decoding.
 *
 * Reads lines "N TEXT" and answers each with the CPU microseconds a picture that N samples of the pipeline took, each
 * with draws of its own, planning included. PIXELS is a file of the picture's RGB. What takes in rows and gives out
 * pixels is in each number: the text "decode" is that alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/augment/recipe.h"
#include "tests/support/pixels.h"

static void fail(const char *text) {
        fprintf(stderr, "step_time: %s\n", text);
        exit(1);
}

static double cpu_us(void) {
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* The output of the largest of the samples. */
static uint8_t *reserve(uint8_t *out, size_t *n_out, size_t n_bytes) {
        if (n_bytes <= *n_out)
                return out;
        free(out);
        *n_out = n_bytes;
        out = malloc(n_bytes);
        if (!out)
                fail("no memory");
        return out;
}

static double time_of(const char *text, unsigned n, const struct view *view) {
        struct workspace *workspace = NULL;
        struct recipe *recipe = NULL;
        static struct geometry geometry;
        size_t n_out = 0;
        uint8_t *out = NULL;
        struct why why = {};
        double begin;

        if (recipe_parse(text, &recipe, &why) < 0 || workspace_new(RESIZE_CODE_BEST, &workspace, &why) < 0)
                fail(why.text);
        begin = cpu_us();
        for (unsigned i = 0; i < n; i++) {
                const struct pixel_format *format = recipe_format(recipe);
                size_t row;

                if (recipe_plan(recipe, view->width, view->height, 0, 0, i, &geometry, &why) < 0)
                        fail(why.text);
                row = pixel_format_row_bytes(format, geometry.width);
                out = reserve(out, &n_out, row * geometry.height * format->n_channels);
                if (recipe_apply(workspace, &geometry, view, out, row, &why) < 0)
                        fail(why.text);
        }
        begin = (cpu_us() - begin) / n;
        free(out);
        workspace_free(workspace);
        recipe_free(recipe);
        return begin;
}

int main(int argc, char **argv) {
        struct view view = { 0 };
        char line[4096];
        FILE *file;

        if (argc != 4)
                fail("usage: step_time WIDTH HEIGHT PIXELS");
        view.width = (uint32_t)strtoul(argv[1], NULL, 10);
        view.height = (uint32_t)strtoul(argv[2], NULL, 10);
        view.stride = (size_t)view.width * PIXEL_BYTES;
        view.pixels = malloc(view.stride * view.height);
        file = fopen(argv[3], "rb");
        if (!view.pixels || !file || fread((uint8_t *)view.pixels, view.stride, view.height, file) != view.height)
                fail("the picture could not be read");
        fclose(file);
        while (fgets(line, sizeof(line), stdin)) {
                char *text;
                unsigned n = (unsigned)strtoul(line, &text, 10);

                text[strcspn(text, "\n")] = '\0';
                printf("%.2f\n", time_of(text, n > 0 ? n : 1, &view));
                fflush(stdout);
        }
        return 0;
}
