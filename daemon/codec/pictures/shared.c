#include "daemon/codec/pictures/shared.h"

#include <assert.h>
#include <string.h>

#include "daemon/codec/turned.h"
#include "daemon/decode/exif.h"

bool codec_can_share(const struct codec *codec, const struct codec *other) {
        return codec->type == &CODEC_PICTURE && other->type == &CODEC_PICTURE && codec->idx_field == other->idx_field &&
               recipe_format(codec->recipe)->mode == recipe_format(other->recipe)->mode &&
               !pixel_format_has_alpha(recipe_format(codec->recipe));
}

bool shared_is_ready(const struct codec_tools *tools) {
        return tools->shared.state == SHARED_READY;
}

static uint64_t shared_bytes_of(const struct box *box) {
        return (uint64_t)box->width * box->height * PIXEL_BYTES;
}

static void extend(struct box *box, const struct box *other) {
        uint32_t x1 = box->x + box->width, y1 = box->y + box->height;

        if (other->x + other->width > x1)
                x1 = other->x + other->width;
        if (other->y + other->height > y1)
                y1 = other->y + other->height;
        box->x = other->x < box->x ? other->x : box->x;
        box->y = other->y < box->y ? other->y : box->y;
        box->width = x1 - box->x;
        box->height = y1 - box->y;
}

/* What a picture takes that is cut from a shared one. */
static uint64_t need_of_cutting(const struct geometry *geometry, bool is_turned) {
        return recipe_bytes_needed(geometry) + (is_turned ? turned_need(geometry) : 0);
}

/* Plans a picture that is served after the open one: what of the stored picture it needs, and what cutting it takes.
 * False: it cannot be planned, which is told when its turn comes. */
static bool plan_other(struct codec_tools *tools, const struct codec_input *input, const struct codec_sharer *sharer,
                       struct box *ret_source, uint64_t *ret_need) {
        const struct codec *codec = sharer->codec;
        struct geometry *geometry = &tools->shared.geometry;
        uint32_t orientation = EXIF_UPRIGHT, width = tools->info.width, height = tools->info.height;
        struct codec_input own = *input;

        if (recipe_is_upright(codec->recipe))
                orientation = exif_orientation(input->bytes, input->n_bytes);
        own.seed = sharer->seed;
        turned_size(orientation, &width, &height);
        geometry->boxes = NULL;
        if (codec_needs_boxes(codec)) /* the input has those of another part */
                return false;
        if (recipe_plan(codec->recipe, width, height, codec_seed(codec, &own), input->epoch, input->sample, geometry,
                        NULL) < 0)
                return false;
        *ret_source = turned_source(orientation, tools->info.width, tools->info.height, &geometry->source);
        *ret_need = need_of_cutting(geometry, orientation != EXIF_UPRIGHT);
        return true;
}

/* The first of several pictures: shall they share? */
static void plan_first(struct codec_tools *tools, const struct codec_input *input, const struct box *source,
                       struct codec_opened *opened) {
        struct shared *shared = &tools->shared;
        uint64_t most = need_of_cutting(&tools->geometry, tools->orientation != EXIF_UPRIGHT);
        uint64_t alone = decoder_work(tools->decoder, source), together, need;
        struct box box = *source, other;

        shared->state = SHARED_GIVEN_UP;
        for (uint32_t i = 0; i < input->n_sharers; i++) {
                if (!plan_other(tools, input, &input->sharers[i], &other, &need))
                        return;
                most = need > most ? need : most;
                alone += decoder_work(tools->decoder, &other);
                extend(&box, &other);
        }
        together = decoder_work(tools->decoder, &box) + DECODE_WORK_COPY * (shared_bytes_of(&box) / PIXEL_BYTES);
        if (together >= alone)
                return;
        shared->state = SHARED_PLANNED;
        shared->box = box;
        opened->alone_bytes = opened->need_bytes;
        opened->need_bytes = decoder_need(tools->decoder, &box) + shared_bytes_of(&box) + most;
}

void shared_plan(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                 const struct box *source, struct codec_opened *opened) {
        struct shared *shared = &tools->shared;

        shared->n_after = input->n_sharers;
        if (shared->state == SHARED_PLANNED) /* of a field that was opened and not rendered */
                shared->state = SHARED_NONE;
        if (shared->state == SHARED_READY)
                opened->need_bytes = shared_bytes_of(&shared->box) +
                                     need_of_cutting(&tools->geometry, tools->orientation != EXIF_UPRIGHT);
        else if (shared->state == SHARED_NONE && input->n_sharers > 0 &&
                 !pixel_format_has_alpha(recipe_format(codec->recipe)))
                plan_first(tools, input, source, opened);
}

int shared_decode(struct codec_tools *tools, bool *ret_is_closed) {
        struct shared *shared = &tools->shared;
        int r;

        *ret_is_closed = false;
        if (shared->state == SHARED_READY)
                return 0;
        if (shared->state != SHARED_PLANNED)
                return SHARED_ALONE;
        shared->state = SHARED_GIVEN_UP;
        r = codec_memory_reserve(&shared->pixels, (size_t)shared_bytes_of(&shared->box), NULL);
        if (r < 0)
                return SHARED_ALONE;
        r = decoder_read_box(tools->decoder, &shared->box, shared->pixels.bytes,
                             (size_t)shared->box.width * PIXEL_BYTES, NULL);
        *ret_is_closed = r < 0;
        if (r < 0)
                return SHARED_ALONE;
        shared->state = SHARED_READY;
        return 0;
}

/* The stored pixels of a box. */
static struct view shared_view_of(const struct codec_tools *tools, const struct box *source) {
        const struct shared *shared = &tools->shared;
        uint32_t x = source->x - shared->box.x, y = source->y - shared->box.y;
        size_t stride = (size_t)shared->box.width * PIXEL_BYTES;

        assert(shared->state == SHARED_READY && source->x >= shared->box.x && source->y >= shared->box.y);
        assert(x + source->width <= shared->box.width && y + source->height <= shared->box.height);
        return (struct view){ .pixels = shared->pixels.bytes + y * stride + (size_t)x * PIXEL_BYTES,
                              .stride = stride,
                              .width = source->width,
                              .height = source->height };
}

int shared_cut(struct codec_tools *tools, const struct box *source, uint8_t *out, size_t stride, struct why *why) {
        struct view view = shared_view_of(tools, source);

        if (tools->orientation != EXIF_UPRIGHT)
                return turned_run(tools, tools->orientation, &view, out, stride, why);
        if (!tools->geometry.is_copy)
                return recipe_run(tools->workspace, &tools->geometry, &view, out, stride, why);
        for (uint32_t y = 0; y < view.height; y++)
                memcpy(out + y * stride, view.pixels + y * view.stride, (size_t)view.width * PIXEL_BYTES);
        return 0;
}

void codec_decode_alone(struct codec_tools *tools) {
        assert(tools->shared.state != SHARED_READY);
        tools->shared.state = SHARED_GIVEN_UP;
}

void shared_close(struct codec_tools *tools) {
        if (tools->shared.n_after == 0)
                shared_forget(tools);
}

void shared_forget(struct codec_tools *tools) {
        tools->shared.state = SHARED_NONE;
}
