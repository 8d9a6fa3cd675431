#include "daemon/codec/render.h"

/* The target of the decoder's rows. */
struct field_rendering {
        struct workspace *workspace;
        const struct geometry *geometry;
        uint8_t *out;
        size_t stride;
};

static int render_on_begin(void *userdata, struct why *why) {
        struct field_rendering *rendering = userdata;

        return recipe_begin(rendering->workspace, rendering->geometry, rendering->out, rendering->stride, why);
}

static int render_on_rows(void *userdata, const struct view *rows, struct why *why) {
        struct field_rendering *rendering = userdata;

        recipe_feed(rendering->workspace, rows);
        return workspace_ask(rendering->workspace, why);
}

int render(struct decoder *decoder, struct workspace *workspace, const struct geometry *geometry, uint8_t *out,
           size_t stride, struct why *why) {
        struct field_rendering rendering = {
                .workspace = workspace,
                .geometry = geometry,
                .out = out,
                .stride = stride,
        };
        struct row_sink sink = { .begin = render_on_begin, .take = render_on_rows, .userdata = &rendering };
        int r;

        if (geometry->is_copy)
                return decoder_read_into(decoder, out, stride, why);
        r = decoder_read_rows(decoder, &geometry->source, &sink, why);
        return r < 0 ? r : recipe_end(workspace, why);
}
