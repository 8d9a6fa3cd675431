/* Boxes in a part with a picture: arrays that move as the steps of the part move the picture. Where the part drops some
 * of them (`sanitize`), they are moved when they are opened, because only then it is known how many stay. */

#include <errno.h>
#include <string.h>

#include "daemon/codec/codec_type.h"

#define BOX_BYTES 16u

/* Steps that a picture is too small for are noticed late. */
static int boxes_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                      struct why *why) {
        ret_form->fails_late = true;
        return codec_value_type(codec)->form(codec, terms, ret_form, why);
}

/* Moves the boxes in memory of the tools, and notes which of them stay. */
static int move_and_drop(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                         struct codec_opened *opened, struct why *why) {
        struct codec_kept *kept = input->kept;
        int r;

        if (tools->n_boxes > BOXES_MAX)
                return why_set(why, -E2BIG, "has %zu boxes; sanitize is for %u at most", tools->n_boxes, BOXES_MAX);
        r = codec_memory_reserve(&tools->rows, tools->n_boxes * BOX_BYTES, why);
        if (r == 0)
                r = codec_value_type(codec)->render(codec, tools, input, tools->rows.bytes, why);
        if (r < 0)
                return r;
        motions_apply(&tools->motions, tools->rows.bytes, tools->n_boxes, kept->bits);
        kept->n_boxes = (uint32_t)tools->n_boxes;
        kept->n_kept = 0;
        for (uint32_t i = 0; i < kept->n_boxes; i++)
                kept->n_kept += kept->bits[i / 8] >> i % 8 & 1;
        kept->is_known = true;
        opened->shape[0] = kept->n_kept;
        opened->n_bytes = (uint64_t)kept->n_kept * BOX_BYTES;
        opened->need_bytes = 0;
        return 0;
}

int codec_load_plan_boxes(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                          struct geometry *geometry, struct why *why) {
        const struct codec_plan_boxes *wanted = &input->plan_boxes;
        struct codec_input boxes = *input;
        struct codec_opened opened;
        int r;

        tools->plan_boxes.n = 0;
        geometry->boxes = &tools->plan_boxes;
        if (!codec_needs_boxes(codec) || !wanted->codec)
                return 0;
        if (wanted->is_elsewhere)
                return why_set(
                        why, -ENOTSUP,
                        "random_iou_crop needs the boxes in %s before the picture is decoded, and they lie in "
                        "another file: keep both in one shard, or the boxes where the index has them, as in COCO",
                        wanted->codec->name);
        boxes.bytes = wanted->bytes;
        boxes.n_bytes = wanted->n_bytes;
        r = codec_value_type(wanted->codec)->open(wanted->codec, tools, &boxes, &opened, why);
        if (r < 0)
                return r;
        if (opened.shape[0] > (int64_t)BOXES_MAX)
                return why_set(why, -E2BIG, "has %lld boxes; random_iou_crop is for %u at most",
                               (long long)opened.shape[0], BOXES_MAX);
        r = codec_memory_reserve(&tools->plan_memory, (size_t)opened.shape[0] * BOX_BYTES, why);
        if (r == 0)
                r = codec_value_type(wanted->codec)
                            ->render(wanted->codec, tools, &boxes, tools->plan_memory.bytes, why);
        if (r < 0)
                return r;
        tools->plan_boxes = (struct recipe_boxes){ tools->plan_memory.bytes, (size_t)opened.shape[0] };
        return 0;
}

static int boxes_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      struct codec_opened *ret_opened, struct why *why) {
        int r = codec_load_plan_boxes(codec, tools, input, &tools->geometry, why);

        if (r < 0)
                return r;
        r = recipe_plan_motions(codec->recipe, input->lead_width, input->lead_height, codec_seed(codec, input),
                                input->epoch, input->sample, &tools->geometry, &tools->motions, why);

        if (r == 0)
                r = codec_value_type(codec)->open(codec, tools, input, ret_opened, why);
        if (r < 0)
                return r;
        tools->n_boxes = (size_t)ret_opened->shape[0];
        return codec_drops_boxes(codec) ? move_and_drop(codec, tools, input, ret_opened, why) : 0;
}

static int boxes_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        uint8_t *out, struct why *why) {
        int r;

        if (codec_drops_boxes(codec)) {
                codec_copy_kept(input->kept, tools->rows.bytes, BOX_BYTES, out);
                return 0;
        }
        r = codec_value_type(codec)->render(codec, tools, input, out, why);
        if (r == 0)
                motions_apply(&tools->motions, out, tools->n_boxes, NULL);
        return r;
}

const struct codec_type CODEC_BOXES = {
        .name = "boxes",
        .interprets = INTERPRETS_ALL,
        .form = boxes_form,
        .open = boxes_open,
        .render = boxes_render,
        .refuse_room = codec_refuse_ragged,
        .refuse_memory = codec_refuse_elements,
};
