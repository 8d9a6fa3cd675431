/* Arrays in a part with boxes: labels, areas and whatever else has a row for each box. Where the part drops boxes
 * (`sanitize`), their rows leave with them; else they are delivered as they are. Points move with the picture. */

#include <errno.h>
#include <string.h>

#include "daemon/codec/codec_type.h"

#define POINT_BYTES 8u

static int rows_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                     struct why *why) {
        int r = codec_value_type(codec)->form(codec, terms, ret_form, why);

        ret_form->fails_late = true;
        return r;
}

static bool codec_rows_drops_some(const struct codec *codec, const struct codec_input *input) {
        return codec->is_of_boxes && codec_drops_boxes(codec) && input->kept->is_known;
}

static uint64_t codec_rows_row_bytes(const struct codec_opened *opened) {
        return opened->shape[0] > 0 ? opened->n_bytes / (uint64_t)opened->shape[0] : 0;
}

static int rows_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                     struct codec_opened *ret_opened, struct why *why) {
        const struct codec_kept *kept = input->kept;
        int r = codec_load_plan_boxes(codec, tools, input, &tools->geometry, why);

        if (r < 0)
                return r;
        r = codec->is_points ? recipe_plan_motions(codec->recipe, input->lead_width, input->lead_height,
                                                   codec_seed(codec, input), input->epoch, input->sample,
                                                   &tools->geometry, &tools->motions, why)
                             : 0;

        if (r == 0)
                r = codec_value_type(codec)->open(codec, tools, input, ret_opened, why);
        tools->n_out_bytes = r == 0 ? ret_opened->n_bytes : 0;
        if (r < 0 || !codec_rows_drops_some(codec, input))
                return r;
        if (ret_opened->shape[0] != kept->n_boxes)
                return why_set(why, -EBADMSG,
                               "has %lld rows for %u boxes, and does not say which of them leave with a box: name it "
                               "in a part of its own",
                               (long long)ret_opened->shape[0], kept->n_boxes);
        tools->n_rows_bytes = ret_opened->n_bytes;
        tools->n_row_bytes = codec_rows_row_bytes(ret_opened);
        ret_opened->need_bytes += ret_opened->n_bytes;
        ret_opened->n_bytes = tools->n_out_bytes = kept->n_kept * tools->n_row_bytes;
        ret_opened->shape[0] = kept->n_kept;
        return 0;
}

static int render_rows(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                       uint8_t *out, struct why *why) {
        int r;

        if (!codec_rows_drops_some(codec, input))
                return codec_value_type(codec)->render(codec, tools, input, out, why);
        r = codec_memory_reserve(&tools->rows, tools->n_rows_bytes, why);
        if (r == 0)
                r = codec_value_type(codec)->render(codec, tools, input, tools->rows.bytes, why);
        if (r == 0)
                codec_copy_kept(input->kept, tools->rows.bytes, tools->n_row_bytes, out);
        return r;
}

static int rows_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                       uint8_t *out, struct why *why) {
        int r = render_rows(codec, tools, input, out, why);

        if (r == 0 && codec->is_points)
                motions_apply_points(&tools->motions, out, tools->n_out_bytes / POINT_BYTES);
        return r;
}

void codec_copy_kept(const struct codec_kept *kept, const uint8_t *rows, uint64_t n_row_bytes, uint8_t *out) {
        for (uint32_t i = 0; i < kept->n_boxes; i++) {
                if (!(kept->bits[i / 8] >> i % 8 & 1))
                        continue;
                memcpy(out, rows + i * n_row_bytes, n_row_bytes);
                out += n_row_bytes;
        }
}

const struct codec_type CODEC_ROWS = {
        .name = "rows",
        .interprets = INTERPRETS_ALL,
        .form = rows_form,
        .open = rows_open,
        .render = rows_render,
        .refuse_room = codec_refuse_ragged,
        .refuse_memory = codec_refuse_elements,
};
