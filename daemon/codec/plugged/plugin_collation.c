#include "daemon/codec/plugged/plugin_collation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/codec_type.h"
#include "daemon/codec/plugged/plugged_forms.h"
#include "proto/base/cleanup.h"

struct plugin_collation {
        struct plugin_step_text text;
        struct plugin_use *use;
};

static void plugin_collation_freep(struct plugin_collation **collation) {
        plugin_collation_free(*collation);
}

static int plugin_collation_settle(struct plugin_collation *collation, const struct dlplugin_form *sample,
                                   struct why *why) {
        const struct plugin_step_text *text = &collation->text;
        struct why what;
        int r;

        if (plugin_form_bytes(sample) == 0)
                return why_set(why, -EINVAL, "pipeline, column %zu: plugin: the samples have no elements",
                               text->column);
        r = plugin_use_new(text->plugin, text->idx_step, &text->values, sample, &collation->use, &what);
        return r < 0 ? why_set(why, r, "pipeline, column %zu: %s", text->column, what.text) : 0;
}

int plugin_collation_new(const struct plugin_step_text *text, const struct codec *codec, const struct source *source,
                         struct plugin_collation **ret_collation, struct why *why) {
        _cleanup_(plugin_collation_freep) struct plugin_collation *collation = calloc(1, sizeof(*collation));
        struct dlplugin_form sample;
        int r;

        if (!collation)
                return why_errno(why, -ENOMEM, "pipeline");
        collation->text = *text;
        r = forms_of_codec(codec, source, text->column, &sample, why);
        if (r == 0)
                r = plugin_collation_settle(collation, &sample, why);
        if (r == 0)
                *ret_collation = TAKE_PTR(collation);
        return r;
}

void plugin_collation_free(struct plugin_collation *collation) {
        if (!collation)
                return;
        plugin_use_free(collation->use);
        free(collation);
}

const struct plugin_use *plugin_collation_use(const struct plugin_collation *collation) {
        return collation->use;
}

void plugin_collation_print(const struct plugin_collation *collation, FILE *stream) {
        plugin_step_print(&collation->text, stream);
}

void plugin_collation_apply(const struct plugin_collation *collation, struct field_form *form) {
        struct field_form rows = { .is_whole = true };

        rows.input = (struct field_input){ .n_bytes = field_form_bytes(form, form->shape),
                                           .dtype = form->dtype,
                                           .n_dims = form->n_dims };
        memcpy(rows.input.shape, form->shape, sizeof(rows.input.shape));
        memcpy(rows.name, form->name, sizeof(rows.name));
        forms_to_field(plugin_use_output(collation->use), &rows);
        *form = rows;
}

uint64_t plugin_collation_need(const struct plugin_collation *collation, uint32_t n) {
        return plugin_use_need_of_batch(collation->use, n);
}

int plugin_collation_run(const struct plugin_collation *collation, const struct codec *codec, struct codec_tools *tools,
                         const struct codec_input *input, uint32_t n, const uint8_t *samples, uint8_t *out,
                         struct why *why) {
        const struct plugin_draws draws = { .seed = codec_seed(codec, input),
                                            .sample = input->sample,
                                            .epoch = input->epoch,
                                            .place = FORMS_COLLATION_PLACE };
        int r = forms_seats(tools, why);

        if (r < 0)
                return r;
        stage_enter(&tools->clock, STAGE_PLUGIN);
        return plugin_use_collate(collation->use, tools->seats, &draws, n, samples, out, why);
}
