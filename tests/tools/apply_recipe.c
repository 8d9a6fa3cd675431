/* tools/apply_recipe.c: does to pictures what pipelines say, without a daemon and without decoding.
 *
 *      apply_recipe <requests >replies
 *
 * A request is six little-endian words, then the text, then the picture's RGB pixels:
 *
 *      uint32 length of the text, width, height, epoch; uint64 seed, sample
 *
 * A reply is an int32 (0, or the negative errno), uint32 height, width and number of bytes, then the bytes: the result,
 * or the sentence that goes with the error. It ends with the input. For tests that ask torchvision the same. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/recipe.h"
#include "proto/base/cleanup.h"
#include "tests/support/pixels.h"

struct request {
        uint32_t n_text, width, height, epoch;
        uint64_t seed, sample;
};

struct reply {
        int32_t error;
        uint32_t height, width, n_bytes;
};

static int run(struct workspace *workspace, const struct request *request, const char *text, const uint8_t *pixels,
               struct reply *reply, uint8_t **ret_out, struct why *why) {
        _cleanup_(recipe_freep) struct recipe *recipe = NULL;
        struct geometry geometry;
        struct view view;
        static const struct recipe_boxes no_boxes;
        uint8_t *out;
        int r;

        r = recipe_parse(text, &recipe, why);
        if (r < 0)
                return r;
        geometry.boxes = &no_boxes;
        r = recipe_plan(recipe, request->width, request->height, request->seed, request->epoch, request->sample,
                        &geometry, why);
        if (r < 0)
                return r;
        view = (struct view){
                .pixels = pixels + ((size_t)geometry.source.y * request->width + geometry.source.x) * PIXEL_BYTES,
                .stride = (size_t)request->width * PIXEL_BYTES,
                .width = geometry.source.width,
                .height = geometry.source.height,
        };
        reply->height = geometry.height;
        reply->width = geometry.width;
        reply->n_bytes = geometry.height * geometry.width * (uint32_t)pixel_format_bytes(recipe_format(recipe));
        out = malloc(reply->n_bytes);
        if (!out)
                return -ENOMEM;
        r = recipe_apply(workspace, &geometry, &view, out,
                         pixel_format_row_bytes(recipe_format(recipe), geometry.width), why);
        if (r < 0) {
                free(out);
                return r;
        }
        *ret_out = out;
        return 0;
}

/* False at the end of the input. */
static bool serve(struct workspace *workspace) {
        struct request request;
        struct reply reply = {};
        struct why why = {};
        char *text;
        uint8_t *pixels, *out = NULL;
        size_t n_pixels;

        if (fread(&request, sizeof(request), 1, stdin) != 1)
                return false;
        n_pixels = (size_t)request.width * request.height * PIXEL_BYTES;
        text = calloc(1, request.n_text + 1ul);
        pixels = malloc(n_pixels);
        if (!text || !pixels || fread(text, 1, request.n_text, stdin) != request.n_text ||
            fread(pixels, 1, n_pixels, stdin) != n_pixels)
                exit(EXIT_FAILURE);

        reply.error = run(workspace, &request, text, pixels, &reply, &out, &why);
        if (reply.error < 0)
                reply.n_bytes = (uint32_t)strlen(why.text);
        fwrite(&reply, sizeof(reply), 1, stdout);
        fwrite(reply.error < 0 ? (const void *)why.text : out, 1, reply.n_bytes, stdout);
        fflush(stdout);
        free(text);
        free(pixels);
        free(out);
        return true;
}

int main(void) {
        struct workspace *workspace = NULL;

        if (workspace_new(RESIZE_CODE_BEST, &workspace, NULL) < 0)
                return EXIT_FAILURE;
        while (serve(workspace))
                ;
        workspace_free(workspace);
        return EXIT_SUCCESS;
}
