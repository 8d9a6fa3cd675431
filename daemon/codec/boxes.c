/* Boxes in a part with a picture: values that move as the steps of the part move the picture. */

#include "daemon/codec/codec_type.h"

/* Steps that a picture is too small for are noticed late. */
static int boxes_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                      struct why *why) {
        ret_form->fails_late = true;
        return CODEC_VALUE.form(codec, terms, ret_form, why);
}

static int boxes_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      struct codec_opened *ret_opened, struct why *why) {
        int r = recipe_plan_motions(codec->recipe, input->lead_width, input->lead_height, codec_seed(codec, input),
                                    input->epoch, input->sample, &tools->geometry, &tools->motions, why);

        if (r < 0)
                return r;
        r = CODEC_VALUE.open(codec, tools, input, ret_opened, why);
        tools->n_boxes = r == 0 ? (size_t)ret_opened->shape[0] : 0;
        return r;
}

static int boxes_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        uint8_t *out, struct why *why) {
        int r = CODEC_VALUE.render(codec, tools, input, out, why);

        if (r == 0)
                motions_apply(&tools->motions, out, tools->n_boxes);
        return r;
}

const struct codec_type CODEC_BOXES = {
        .name = "boxes",
        .form = boxes_form,
        .open = boxes_open,
        .render = boxes_render,
        .refuse_room = codec_refuse_ragged,
};
