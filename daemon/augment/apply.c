/* augment/apply.c: executes what planner.c has folded. */
#include "daemon/augment/recipe.h"

#include "daemon/base/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct workspace {
        struct resizer *resizer;
        uint8_t *between[2]; /* canvases of odd and even stages, all but the last */
        size_t n_between_bytes[2];
};

int workspace_new(enum resize_code code, struct workspace **ret_workspace, struct why *why) {
        _cleanup_(workspace_freep) struct workspace *workspace = calloc(1, sizeof(*workspace));
        int r;

        if (!workspace)
                return why_set(why, -ENOMEM, "no memory for a worker's workspace");
        r = resizer_new(code, &workspace->resizer, why);
        if (r < 0)
                return r;
        *ret_workspace = TAKE_PTR(workspace);
        return 0;
}

void workspace_free(struct workspace *workspace) {
        if (!workspace)
                return;
        resizer_free(workspace->resizer);
        free(workspace->between[0]);
        free(workspace->between[1]);
        free(workspace);
}

void workspace_freep(struct workspace **workspace) {
        workspace_free(*workspace);
}

size_t workspace_bytes(const struct workspace *workspace) {
        return resizer_bytes(workspace->resizer) + workspace->n_between_bytes[0] + workspace->n_between_bytes[1];
}

static int reserve_between(struct workspace *workspace, uint32_t idx, size_t n_bytes, struct why *why) {
        if (n_bytes <= workspace->n_between_bytes[idx])
                return 0;
        free(workspace->between[idx]);
        workspace->n_between_bytes[idx] = 0;
        workspace->between[idx] = malloc(n_bytes);
        if (!workspace->between[idx])
                return why_set(why, -ENOMEM, "no memory for %zu bytes between two steps of the pipeline", n_bytes);
        workspace->n_between_bytes[idx] = n_bytes;
        return 0;
}

/* Blackens the canvas but for the box that will be written. */
static void blacken_around(const struct stage *stage, const struct box *box, uint8_t *out, size_t stride) {
        size_t n_row = (size_t)stage->canvas_width * PIXEL_BYTES;
        size_t n_left = (size_t)box->x * PIXEL_BYTES, n_box = (size_t)box->width * PIXEL_BYTES;

        for (uint32_t y = 0; y < stage->canvas_height; y++, out += stride) {
                if (y < box->y || y >= box->y + box->height) {
                        memset(out, 0, n_row);
                        continue;
                }
                memset(out, 0, n_left);
                memset(out + n_left + n_box, 0, n_row - n_left - n_box);
        }
}

static int apply_stage(struct workspace *workspace, const struct stage *stage, const struct view *source, uint8_t *out,
                       size_t stride, struct why *why) {
        struct resize_job job = {
                .width = stage->width,
                .height = stage->height,
                .window = stage->window,
                .filter = stage->filter,
                .flip = stage->flip,
        };
        struct box place = { .width = stage->window.width, .height = stage->window.height };

        if (place.width > 0) {
                place.x = stage->flip ? stage->canvas_width - stage->paste_x - place.width : stage->paste_x;
                place.y = stage->paste_y;
        }
        if (place.width < stage->canvas_width || place.height < stage->canvas_height)
                blacken_around(stage, &place, out, stride);
        if (place.width == 0)
                return 0;
        return resizer_run(workspace->resizer, source, &job, out + place.y * stride + (size_t)place.x * PIXEL_BYTES,
                           stride, why);
}

static struct view view_of(const struct view *view, const struct box *box) {
        assert(box->x + box->width <= view->width && box->y + box->height <= view->height);
        return (struct view){
                .pixels = view->pixels + box->y * view->stride + (size_t)box->x * PIXEL_BYTES,
                .stride = view->stride,
                .width = box->width,
                .height = box->height,
        };
}

int recipe_apply(struct workspace *workspace, const struct geometry *geometry, const struct view *source, uint8_t *out,
                 size_t stride, struct why *why) {
        struct view input = *source; /* of the first stage: its source box already */
        int r;

        assert(source->width == geometry->source.width && source->height == geometry->source.height);

        for (uint32_t i = 0; i + 1 < geometry->n_stages; i++) {
                const struct stage *stage = &geometry->stages[i];
                size_t n_row = (size_t)stage->canvas_width * PIXEL_BYTES;
                struct view canvas = { .stride = n_row, .width = stage->canvas_width, .height = stage->canvas_height };

                r = reserve_between(workspace, i % 2, n_row * stage->canvas_height, why);
                if (r < 0)
                        return r;
                r = apply_stage(workspace, stage, &input, workspace->between[i % 2], n_row, why);
                if (r < 0)
                        return r;
                canvas.pixels = workspace->between[i % 2];
                input = view_of(&canvas, &geometry->stages[i + 1].source);
        }
        return apply_stage(workspace, &geometry->stages[geometry->n_stages - 1], &input, out, stride, why);
}
