#include "daemon/pipeline/isolation/check_answer.h"

#include <errno.h>
#include <string.h>

/* Errors that are not about the sample have consequences for a job: only what codecs return may have them. */
int check_error(int result) {
        switch (result) {
        case -ECANCELED:
        case -EMFILE:
        case -ENFILE:
                return -EBADMSG;
        default:
                return result;
        }
}

bool check_kept(const struct codec_kept *kept) {
        uint32_t n = 0;
        uint8_t is_known;

        memcpy(&is_known, &kept->is_known, sizeof(is_known)); /* any byte, not only those of a bool */
        if (is_known > 1 || kept->n_boxes > BOXES_MAX || kept->n_kept > kept->n_boxes)
                return false;
        if (is_known == 0)
                return true;
        for (uint32_t i = 0; i < kept->n_boxes; i++)
                n += kept->bits[i / 8] >> (i % 8) & 1;
        return n == kept->n_kept;
}

/* What was promised of the field, without what a function of the trainer's and steps after it make of it. */
static void promised(const struct field_layout *field, struct field_form *ret_form) {
        const struct field_input *input = field->form.input.n_bytes > 0 ? &field->form.input
                                                                        : &field->form.result; /* changed in place */

        *ret_form = field->form;
        if (input->n_bytes == 0)
                return;
        ret_form->dtype = input->dtype;
        ret_form->n_dims = input->n_dims;
        memcpy(ret_form->shape, input->shape, sizeof(ret_form->shape));
}

static bool fits_form(const struct field_layout *field, const struct codec *codec, const struct codec_opened *opened) {
        struct field_form form;

        if (codec_is_plugged(codec))
                codec_form_before_plugins(codec, &form);
        else
                promised(field, &form);
        for (uint32_t i = 0; i < form.n_dims; i++)
                if (opened->shape[i] < 0 || (form.shape[i] >= 0 && opened->shape[i] != form.shape[i]))
                        return false;
        return opened->n_bytes == field_form_bytes(&form, opened->shape) + form.tail_bytes;
}

static bool fits_limits(const struct rendering *rendering, const struct codec *codec,
                        const struct codec_opened *opened) {
        uint64_t max_pixels = rendering->user_cells.setup.limits.max_pixels;

        return !codec_is_picture(codec) ||
               (opened->width > 0 && opened->height > 0 && (uint64_t)opened->width * opened->height <= max_pixels);
}

static bool is_flag(const bool *flag) {
        uint8_t byte;

        memcpy(&byte, flag, sizeof(byte));
        return byte <= 1;
}

static bool is_possible(const struct rendering *rendering, const struct task *task, const struct render_field *field,
                        const struct render_opened *opened) {
        const struct codec *codec = program_codec(task->program, field->idx);

        if (!is_flag(&opened->is_rendered) || !is_flag(&opened->opened.is_absent))
                return false;
        if (opened->opened.is_absent)
                return !opened->is_rendered;
        if (opened->opened.alone_bytes > 0)
                return false;
        if (opened->is_rendered && (field->what == RENDER_OPEN || field->what == RENDER_REFUSE ||
                                    (field->what == RENDER_WHOLE && opened->opened.n_bytes > field->out.n_bytes)))
                return false;
        return fits_form(&task->batch->feed->layout.fields[field->idx], codec, &opened->opened) &&
               fits_limits(rendering, codec_before_plugins(codec), &opened->opened);
}

/* Of which at most n_bytes are there. */
static bool check_answer(const struct rendering *rendering, uint32_t k, const struct render_answer *answer,
                         size_t n_bytes) {
        const struct render_order *order = &rendering->orders[k];

        if (n_bytes < RENDER_ANSWER_BYTES(0) || answer->result > 0 || answer->n_opened > order->n_fields ||
            answer->n_stages > N_STAGES || n_bytes < RENDER_ANSWER_BYTES(answer->n_opened))
                return false;
        if ((answer->result == 0) != (answer->n_opened == order->n_fields))
                return false;
        for (uint32_t i = 0; i < answer->n_opened; i++)
                if (!is_possible(rendering, rendering->tasks[k], &order->fields[i], &answer->opened[i]))
                        return false;
        return true;
}

bool check_answers(struct rendering *rendering, size_t n_bytes) {
        size_t at = sizeof(struct render_answers);

        if (n_bytes < at || rendering->head.head.result != 0 || rendering->head.n_answers != rendering->n_orders)
                return false;
        for (uint32_t k = 0; k < rendering->n_orders; k++) {
                const struct render_answer *answer = (const struct render_answer *)(const void *)(rendering->packet +
                                                                                                  at);

                if (!check_answer(rendering, k, answer, n_bytes - at))
                        return false;
                rendering->answers[k] = answer;
                at += RENDER_ANSWER_BYTES(answer->n_opened);
        }
        return at == n_bytes;
}
