#include "daemon/codec/plugged/unpacked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/plugged/plugged_forms.h"
#include "proto/base/cleanup.h"

static const struct plugin_use *use_of(const struct codec *codec) {
        return codec->plugged.uses[0];
}

/* ---- making --------------------------------------------------------------------------------------------------------
 */

static int unpacked_refuse(const struct codec *codec, size_t column, const char *what, struct why *why) {
        return why_set(why, -EINVAL, "pipeline, column %zu: plugin: field %s %s", column, codec->field.name, what);
}

static int read_recipe(struct codec *codec, const struct codec_steps *rest, size_t column, struct why *why) {
        int r = rest->list.n > 0 ? recipe_read(rest->grammar, rest->list, NULL, &codec->recipe, why)
                                 : recipe_parse("decode", &codec->recipe, why);

        if (r < 0)
                return r;
        if (recipe_kind(codec->recipe) == RECIPE_RAW)
                return unpacked_refuse(codec, column, "is decoded by a plug-in: leave raw out", why);
        if (recipe_format(codec->recipe)->mode != PIXELS_RGB || recipe_is_upright(codec->recipe))
                return unpacked_refuse(codec, column,
                                       "is a picture in RGB, as its plug-in delivers it: leave mode and exif out", why);
        return 0;
}

static int unpacked_print(struct codec *codec, const struct plugin_step_text *codec_step, struct why *why) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return why_errno(why, -ENOMEM, "pipeline");
        plugin_step_print(codec_step, stream);
        if (codec->recipe)
                fprintf(stream, " %s", recipe_text(codec->recipe));
        if (fclose(stream) != 0) {
                free(text);
                return why_errno(why, -ENOMEM, "pipeline");
        }
        free(codec->text);
        codec->text = text;
        return 0;
}

int unpacked_choose(struct codec *codec, const struct plugin_step_text *codec_step, const struct codec_steps *steps,
                    struct why *why) {
        const struct codec_steps rest = { steps->grammar, { steps->list.at + 1, steps->list.n - 1 } };
        struct codec_plugged *plugged = &codec->plugged;
        struct why what;
        int r;

        codec->type = &CODEC_UNPACKED;
        if (!codec->field.is_stored || codec->field.is_gathered)
                return unpacked_refuse(codec, codec_step->column, "is not stored bytes: no codec can be applied to it",
                                       why);
        r = plugin_use_new(codec_step->plugin, codec_step->idx_step, &codec_step->values, NULL, &plugged->uses[0],
                           &what);
        if (r < 0)
                return why_set(why, r, "pipeline, column %zu: %s", codec_step->column, what.text);
        plugged->n_uses = 1;
        if (plugin_use_is_picture(use_of(codec)))
                r = read_recipe(codec, &rest, codec_step->column, why);
        else if (rest.list.n > 0)
                return unpacked_refuse(
                        codec, codec_step->column,
                        "is an array, as its plug-in delivers it, and no picture: only further steps of plug-ins and "
                        "how samples become a batch may follow",
                        why);
        else if (codec->field.may_be_absent)
                return unpacked_refuse(codec, codec_step->column,
                                       "is not in all samples: no plug-in can be applied to it", why);
        return r < 0 ? r : unpacked_print(codec, codec_step, why);
}

static int unpacked_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                         struct why *why) {
        if (codec->recipe)
                return CODEC_PICTURE.form(codec, terms, ret_form, why);
        forms_to_field(plugin_use_output(use_of(codec)), ret_form);
        return 0;
}

/* ---- a sample ------------------------------------------------------------------------------------------------------
 */

static struct plugin_draws draws_of(const struct codec *codec, const struct codec_input *input) {
        return (struct plugin_draws){ .seed = codec_seed(codec, input),
                                      .sample = input->sample,
                                      .epoch = input->epoch,
                                      .place = FORMS_CODEC_PLACE };
}

static int unpacked_check_size(const struct codec_tools *tools, const struct dlplugin_form *form, struct why *why) {
        uint64_t n_pixels = (uint64_t)form->shape[0] * (uint64_t)form->shape[1];

        if (n_pixels <= tools->max_pixels)
                return 0;
        return why_set(why, -EFBIG, "is %lld x %lld pixels, max_pixels allows %llu", (long long)form->shape[1],
                       (long long)form->shape[0], (unsigned long long)tools->max_pixels);
}

static int open_picture(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        struct codec_opened *ret_opened, struct why *why) {
        struct plugin_draws draws = draws_of(codec, input);
        struct dlplugin_form *form = &tools->unpacked;
        struct geometry *geometry = &tools->geometry;
        int r = plugin_use_measure(use_of(codec), tools->seats, &draws, input->bytes, input->n_bytes, form, why);

        if (r == 0)
                r = unpacked_check_size(tools, form, why);
        if (r < 0)
                return r;
        ret_opened->width = (uint32_t)form->shape[1];
        ret_opened->height = (uint32_t)form->shape[0];
        r = picture_plan(codec, tools, input, ret_opened, why);
        if (r < 0)
                return r;
        ret_opened->need_bytes = plugin_use_need_for(input->n_bytes, form) + recipe_bytes_needed(geometry);
        return 0;
}

static int unpacked_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                         struct codec_opened *ret_opened, struct why *why) {
        int r = forms_seats(tools, why);

        if (r < 0)
                return r;
        if (codec->recipe)
                return open_picture(codec, tools, input, ret_opened, why);
        tools->unpacked = *plugin_use_output(use_of(codec));
        for (uint32_t i = 0; i < tools->unpacked.n_dims; i++)
                ret_opened->shape[i] = tools->unpacked.shape[i];
        ret_opened->n_bytes = plugin_form_bytes(&tools->unpacked);
        ret_opened->need_bytes = plugin_use_need_for(input->n_bytes, &tools->unpacked);
        return 0;
}

/* The pixels may be in memory that the plug-in's process can write at any time: they decide nothing. */
static int unpacked_draw(struct codec_tools *tools, const uint8_t *pixels, uint8_t *out, size_t stride,
                         struct why *why) {
        const struct geometry *geometry = &tools->geometry;
        const struct box *source = &geometry->source;
        size_t row_bytes = (size_t)tools->unpacked.shape[1] * PIXEL_BYTES;
        const uint8_t *from = pixels + source->y * row_bytes + (size_t)source->x * PIXEL_BYTES;
        int r;

        if (geometry->is_copy) {
                for (uint32_t y = 0; y < geometry->height; y++)
                        memcpy(out + y * stride, from + y * row_bytes, (size_t)geometry->width * PIXEL_BYTES);
                return 0;
        }
        r = recipe_begin(tools->workspace, geometry, out, stride, why);
        if (r < 0)
                return r;
        recipe_feed(tools->workspace, &(struct view){ .pixels = (uint8_t *)(uintptr_t)from,
                                                      .stride = row_bytes,
                                                      .width = source->width,
                                                      .height = source->height });
        return recipe_end(tools->workspace, why);
}

static int unpacked_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                           uint8_t *out, struct why *why) {
        struct plugin_draws draws = draws_of(codec, input);
        const uint8_t *elements = NULL;
        size_t stride;
        int r;

        stage_enter(&tools->clock, STAGE_PLUGIN);
        r = plugin_use_decode(use_of(codec), tools->seats, &draws, input->bytes, input->n_bytes, &tools->unpacked,
                              &elements, why);
        if (r < 0)
                return r;
        if (!codec->recipe) {
                memcpy(out, elements, plugin_form_bytes(&tools->unpacked));
                return 0;
        }
        stage_enter(&tools->clock, STAGE_MOVE);
        stride = pixel_format_row_bytes(recipe_format(codec->recipe), tools->geometry.width);
        tools->geometry.plane_stride = input->plane_stride;
        return unpacked_draw(tools, elements, out, input->row_stride > 0 ? input->row_stride : stride, why);
}

static int unpacked_refuse_room(const struct codec *codec, const struct codec_opened *opened, uint64_t room_bytes,
                                struct why *why) {
        return CODEC_PICTURE.refuse_room(codec, opened, room_bytes, why);
}

static int unpacked_refuse_shape(const struct codec_opened *opened, const int64_t *other, struct why *why) {
        return CODEC_PICTURE.refuse_shape(opened, other, why);
}

const struct codec_type CODEC_UNPACKED = {
        .name = "unpacked",
        .fini = forms_fini,
        .opening = STAGE_PLUGIN,
        .rendering = STAGE_OTHER,
        .form = unpacked_form,
        .open = unpacked_open,
        .render = unpacked_render,
        .refuse_room = unpacked_refuse_room,
        .refuse_memory = forms_refuse_memory,
        .refuse_shape = unpacked_refuse_shape,
};
