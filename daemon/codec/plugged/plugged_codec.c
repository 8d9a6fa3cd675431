#include "daemon/codec/plugged/plugged_codec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/plugged/plugged_forms.h"
#include "proto/base/cleanup.h"
#include "proto/base/shown/amounts.h"

/* ---- making --------------------------------------------------------------------------------------------------------
 */

static int settle_uses(struct codec *codec, const struct source *source, const struct plugin_step_text *steps,
                       uint32_t n, struct why *why) {
        struct codec_plugged *plugged = &codec->plugged;
        struct dlplugin_form form;
        int r = forms_of_codec(codec->plugged.before, source, steps[0].column, &form, why);

        plugged->before_form = form;
        for (uint32_t i = 0; i < n && r == 0; i++) {
                struct why what;

                r = plugin_use_new(steps[i].plugin, steps[i].idx_step, &steps[i].values, &form, &plugged->uses[i],
                                   &what);
                if (r < 0)
                        return why_set(why, r, "pipeline, column %zu: %s", steps[i].column, what.text);
                plugged->n_uses++;
                form = *plugin_use_output(plugged->uses[i]);
        }
        plugged->keeps_form = memcmp(&form, &plugged->before_form, sizeof(form)) == 0;
        return r;
}

static int plugged_codec_print(struct codec *codec, const struct plugin_step_text *steps, uint32_t n, struct why *why) {
        const char *before = codec_text(codec->plugged.before);
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return why_errno(why, -ENOMEM, "pipeline");
        fputs(before, stream);
        for (uint32_t i = 0; i < n; i++) {
                fputs(i > 0 || before[0] ? " " : "", stream);
                plugin_step_print(&steps[i], stream);
        }
        if (fclose(stream) != 0) {
                free(text);
                return why_errno(why, -ENOMEM, "pipeline");
        }
        free(codec->text);
        codec->text = text;
        return 0;
}

int plugged_settle(struct codec *codec, const struct source *source, const struct plugin_step_text *steps, uint32_t n,
                   struct why *why) {
        int r = settle_uses(codec, source, steps, n, why);

        return r < 0 ? r : plugged_codec_print(codec, steps, n, why);
}

static int plugged_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                        struct why *why) {
        const struct codec_plugged *plugged = &codec->plugged;
        const struct dlplugin_form *form = plugin_use_output(plugged->uses[plugged->n_uses - 1]);
        (void)terms;
        (void)why;
        forms_to_field(form, ret_form);
        return 0;
}

/* ---- a sample ------------------------------------------------------------------------------------------------------
 */

/* Not only the last form: each plug-in has memory for what it gets and delivers. */
void codec_open_plugins(const struct codec *codec, struct codec_opened *opened) {
        const struct codec_plugged *plugged = &codec->plugged;
        const struct dlplugin_form *form = plugin_use_output(plugged->uses[plugged->n_uses - 1]);

        for (uint32_t i = 0; i < form->n_dims; i++)
                opened->shape[i] = form->shape[i];
        opened->n_bytes = plugin_form_bytes(form);
        for (uint32_t i = 0; i < plugged->n_uses; i++)
                opened->need_bytes += plugin_use_need(plugged->uses[i]);
}

static int plugged_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        struct codec_opened *ret_opened, struct why *why) {
        const struct codec_plugged *plugged = &codec->plugged;
        int r = codec_open(plugged->before, tools, input, ret_opened, why);

        if (r != 0)
                return r;
        if (ret_opened->n_bytes != plugin_form_bytes(&plugged->before_form))
                return why_set(why, -EBADMSG, "has %llu bytes before the plug-in, %llu are expected",
                               (unsigned long long)ret_opened->n_bytes,
                               (unsigned long long)plugin_form_bytes(&plugged->before_form));
        codec_open_plugins(codec, ret_opened);
        return 0;
}

static int plugged_codec_reserve(const struct codec_plugged *plugged, struct codec_tools *tools, struct why *why) {
        int r = forms_seats(tools, why);

        for (uint32_t i = 0; i < plugged->n_uses && r == 0; i++)
                r = plugin_use_reserve(plugged->uses[i], tools->seats, why);
        return r;
}

/* The first one's input lies in its place. */
static int plugged_codec_run(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                             uint8_t *out, struct why *why) {
        const struct codec_plugged *plugged = &codec->plugged;
        struct plugin_draws draws = { .seed = codec_seed(codec, input),
                                      .sample = input->sample,
                                      .epoch = input->epoch };
        int r = 0;

        stage_enter(&tools->clock, STAGE_PLUGIN);
        for (uint32_t i = 0; i < plugged->n_uses && r == 0; i++) {
                bool is_last = i + 1 == plugged->n_uses;

                draws.place = FORMS_STEP_PLACE(i);
                r = plugin_use_run(plugged->uses[i], tools->seats, &draws,
                                   is_last ? out : plugin_use_input(plugged->uses[i + 1], tools->seats), why);
        }
        return r;
}

static int plugged_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                          uint8_t *out, struct why *why) {
        const struct codec_plugged *plugged = &codec->plugged;
        struct codec_input before = *input;
        int r = plugged_codec_reserve(plugged, tools, why);

        before.row_stride = before.plane_stride = 0;
        if (r == 0)
                r = codec_render(plugged->before, tools, &before, plugin_use_input(plugged->uses[0], tools->seats),
                                 why);
        return r < 0 ? r : plugged_codec_run(codec, tools, input, out, why);
}

int codec_render_plugins(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                         const uint8_t *before, uint64_t n_skipped_bytes, uint64_t n_kept_bytes, uint8_t *out,
                         struct why *why) {
        const struct codec_plugged *plugged = &codec->plugged;
        uint64_t n_bytes = plugin_form_bytes(plugin_use_output(plugged->uses[plugged->n_uses - 1]));
        int r = plugged_codec_reserve(plugged, tools, why);

        if (r == 0 && n_kept_bytes > 0)
                r = codec_memory_reserve(&tools->whole, n_bytes, why);
        if (r < 0)
                return r;
        memcpy(plugin_use_input(plugged->uses[0], tools->seats), before, plugin_form_bytes(&plugged->before_form));
        r = plugged_codec_run(codec, tools, input, n_kept_bytes > 0 ? tools->whole.bytes : out, why);
        if (r == 0 && n_kept_bytes > 0)
                memcpy(out, tools->whole.bytes + n_skipped_bytes, n_kept_bytes);
        return r;
}

/* ---- where another process does what comes before ------------------------------------------------------------------
 */

uint32_t codec_uses(const struct codec *codec, const struct plugin_use **ret_uses) {
        uint32_t n = codec->plugged.before ? codec_uses(codec->plugged.before, ret_uses) : 0;

        for (uint32_t i = 0; i < codec->plugged.n_uses; i++)
                ret_uses[n++] = codec->plugged.uses[i];
        return n;
}

const struct codec *codec_before_plugins(const struct codec *codec) {
        if (codec->type == &CODEC_UNPACKED)
                return NULL;
        return codec->type == &CODEC_PLUGGED ? codec_before_plugins(codec->plugged.before) : codec;
}

void codec_form_before_plugins(const struct codec *codec, struct field_form *ret_form) {
        *ret_form = (struct field_form){ 0 };
        forms_to_field(&codec->plugged.before_form, ret_form);
}

static int plugged_refuse_room(const struct codec *codec, const struct codec_opened *opened, uint64_t room_bytes,
                               struct why *why) {
        char has[AMOUNT_TEXT_MAX], room[AMOUNT_TEXT_MAX];

        (void)codec;
        format_compared(has, opened->n_bytes, room, room_bytes);
        return why_set(why, -EFBIG, "has %s after the plug-in, there is room for %s", has, room);
}

const struct codec_type CODEC_PLUGGED = {
        .name = "plugged",
        .fini = forms_fini,
        .opening = STAGE_OTHER,
        .rendering = STAGE_OTHER,
        .form = plugged_form,
        .open = plugged_open,
        .render = plugged_render,
        .refuse_room = plugged_refuse_room,
        .refuse_memory = forms_refuse_memory,
};
