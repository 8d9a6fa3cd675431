#include "daemon/codec/codec.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/codec_type.h"
#include "daemon/codec/steps/views_step.h"
#include "daemon/sound/sound_recipe.h"
#include "proto/order/philox.h"

void codec_free(struct codec *codec) {
        if (!codec)
                return;
        recipe_free(codec->recipe);
        sound_recipe_free(codec->sound_recipe);
        value_steps_fini(&codec->steps);
        if (codec->type && codec->type->fini)
                codec->type->fini(codec);
        free(codec->text);
        free(codec);
}

static const struct codec_type *type_without_steps(const struct schema_field *field) {
        switch (field->kind) {
        case FIELD_VALUE:
                if (field->is_stored && field->coding == CODING_NPY)
                        return &CODEC_NPY;
                return field->is_stored && field->coding != CODING_PLAIN ? &CODEC_ELEMENTS : &CODEC_VALUE;
        case FIELD_NUMBER:
                return &CODEC_NUMBER;
        case FIELD_TEXT:
                return &CODEC_TEXT;
        case FIELD_TEXTS:
                return &CODEC_TEXTS;
        case FIELD_NAME:
                return &CODEC_NAME;
        default:
                return &CODEC_BYTES;
        }
}

const struct codec_type *codec_value_type(const struct codec *codec) {
        const struct codec_type *type = type_without_steps(&codec->field);

        return codec->steps.has_dtype && type == &CODEC_VALUE ? &CODEC_ELEMENTS : type;
}

uint32_t codec_lead(const struct codec *codec) {
        return codec->idx_lead;
}

uint32_t codec_boxes(const struct codec *codec) {
        return codec->idx_boxes;
}

void codec_set_lead(struct codec *codec, uint32_t idx_lead) {
        codec->idx_lead = idx_lead;
}

void codec_set_boxes(struct codec *codec, uint32_t idx_boxes) {
        codec->idx_boxes = idx_boxes;
}

uint32_t codec_plan_boxes(const struct codec *codec) {
        return codec->idx_plan_boxes;
}

void codec_set_plan_boxes(struct codec *codec, uint32_t idx_boxes) {
        codec->idx_plan_boxes = idx_boxes;
}

bool codec_needs_boxes(const struct codec *codec) {
        return codec->recipe && recipe_needs_boxes(codec->recipe);
}

bool codec_is_boxes(const struct codec *codec) {
        return codec->type == &CODEC_BOXES;
}

bool codec_is_points(const struct codec *codec) {
        return codec->is_points;
}

bool codec_is_of_boxes(const struct codec *codec) {
        return codec->is_of_boxes;
}

bool codec_is_picture(const struct codec *codec) {
        if (codec->type == &CODEC_PLUGGED)
                return codec->plugged.keeps_form && codec_is_picture(codec->plugged.before);
        return codec->type == &CODEC_PICTURE || (codec->type == &CODEC_UNPACKED && codec->recipe);
}

bool codec_is_plugged(const struct codec *codec) {
        return codec->type == &CODEC_PLUGGED || codec->type == &CODEC_UNPACKED;
}

bool codec_is_tokens(const struct codec *codec) {
        return codec->type == &CODEC_TOKENS || strcmp(codec->field.name, "input_ids") == 0 ||
               strcmp(codec->field.name, "tokens") == 0;
}

bool codec_decodes(const struct codec *codec) {
        if (codec->type == &CODEC_PLUGGED)
                return codec_decodes(codec->plugged.before);
        return codec->type == &CODEC_PICTURE || codec->type == &CODEC_BANDS || codec->type == &CODEC_SOUND;
}

void codec_set_mask(struct codec *codec) {
        assert(codec->type == &CODEC_PICTURE);
        codec->type = &CODEC_MASK;
}

int codec_add_work(const struct codec *codec, struct recipe_work *work, struct why *why) {
        if (work->most == 0 || !(codec_is_picture(codec) || codec_is_mask(codec)) || !codec->recipe)
                return 0;
        recipe_add_work(codec->recipe, work);
        if (!work->passing)
                return 0;
        return why_set(
                why, -EINVAL,
                "pipeline: field %s: with step %s, the steps of a sample make %llu pixels or more, max_step_pixels "
                "allows %llu: make pictures smaller or use fewer steps, or have it raised",
                codec->name, work->passing, (unsigned long long)work->n_pixels, (unsigned long long)work->most);
}

bool codec_is_mask(const struct codec *codec) {
        return codec->type == &CODEC_MASK;
}

/* A sample that may lack its picture has a place of its own in the slot: such pictures are finished here. */
bool codec_can_leave_form(const struct codec *codec) {
        return codec->type == &CODEC_PICTURE && !codec->field.may_be_absent && recipe_can_leave_form(codec->recipe);
}

void codec_leave_form(struct codec *codec) {
        recipe_leave_form(codec->recipe);
}

bool codec_can_leave_operations(const struct codec *codec) {
        return codec->type == &CODEC_PICTURE && !codec->field.may_be_absent &&
               recipe_can_leave_operations(codec->recipe);
}

void codec_leave_operations(struct codec *codec) {
        recipe_leave_operations(codec->recipe);
}

bool codec_left_form(const struct codec *codec, struct picture_form *ret_form) {
        return codec->type == &CODEC_PICTURE && recipe_left_form(codec->recipe, ret_form);
}

const char *codec_mask_dtype(const struct codec *codec) {
        enum dlp_dtype dtype;

        return codec->recipe && recipe_mask_dtype(codec->recipe, &dtype) ? dlp_dtype_name(dtype) : NULL;
}

bool codec_is_planes(const struct codec *codec) {
        return codec->type == &CODEC_PLANES;
}

uint32_t codec_channels(const struct codec *codec) {
        const struct pixel_format *format = recipe_format(codec->recipe);

        return format->dtype == DLP_DTYPE_UINT8 && !format->channels_first ? format->n_channels : 0;
}

/* Tokens stay because each cell would hold a vocabulary of its own, and what plug-ins decode because they do it in
 * processes of their own. */
bool codec_interprets(const struct codec *codec) {
        if (codec->type == &CODEC_PLUGGED)
                return codec_interprets(codec->plugged.before);
        return codec->type->interprets == INTERPRETS_ALL ||
               (codec->type->interprets == INTERPRETS_STORED && codec->field.is_stored);
}

bool codec_is_upright(const struct codec *codec) {
        return codec->recipe && recipe_is_upright(codec->recipe);
}

bool codec_drops_boxes(const struct codec *codec) {
        return codec->recipe && recipe_drops_boxes(codec->recipe);
}

uint64_t codec_seed(const struct codec *codec, const struct codec_input *input) {
        return codec->group == 0 ? input->seed : dlp_philox_seed(input->seed, UINT64_MAX - codec->group);
}

uint32_t codec_field(const struct codec *codec) {
        return codec->idx_field;
}

const char *codec_name(const struct codec *codec) {
        return codec->name;
}

uint32_t codec_view(const struct codec *codec) {
        return codec->view;
}

int codec_set_name(struct codec *codec, const char *name, size_t n) {
        if (n >= sizeof(codec->name))
                return -ENAMETOOLONG;
        memcpy(codec->name, name, n);
        codec->name[n] = '\0';
        return 0;
}

bool codec_is_again(const struct codec *codec) {
        return codec->is_again;
}

void codec_set_again(struct codec *codec) {
        codec->is_again = true;
}

int codec_set_view(struct codec *codec, uint32_t view) {
        char name[DLP_TENSOR_NAME_MAX];
        int r = views_name(codec->name, view, name);

        if (r < 0)
                return r;
        strcpy(codec->name, name);
        codec->view = view;
        return 0;
}

uint32_t codec_draws(const struct codec *codec) {
        return codec->is_crop ? 0 : codec->view;
}

void codec_set_crop(struct codec *codec) {
        codec->is_crop = true;
        if (codec->recipe)
                recipe_set_view(codec->recipe, codec->view);
        if (!codec->plugged.before)
                return;
        codec->plugged.before->view = codec->view;
        codec_set_crop(codec->plugged.before);
}

bool codec_is_stored(const struct codec *codec) {
        return codec->field.is_stored;
}

bool codec_is_row(const struct codec *codec) {
        return codec->type == &CODEC_VALUE || codec_is_gathered(codec);
}

bool codec_is_gathered(const struct codec *codec) {
        return codec->type == &CODEC_GATHERED;
}

const char *codec_text(const struct codec *codec) {
        return codec->text;
}

int codec_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
               struct why *why) {
        struct field_form form = { 0 };
        int r = codec->type->form(codec, terms, &form, why);

        if (r < 0)
                return r;
        snprintf(form.name, sizeof(form.name), "%s", codec->name);
        form.is_gathered = codec_is_gathered(codec);
        *ret_form = form;
        return 0;
}

/* ---- a sample -------------------------------------------------------------------------------------------------- */

static void codec_mark(struct codec_tools *tools, enum stage_id stage) {
        if (stage != STAGE_OTHER)
                stage_enter(&tools->clock, stage);
}

int codec_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
               struct codec_opened *ret_opened, struct why *why) {
        ret_opened->is_absent = false;
        ret_opened->alone_bytes = ret_opened->made_bytes = 0;
        codec_mark(tools, codec->type->opening);
        tools->close = codec->type->close; /* or that of what it stands on, which is opened next */
        return codec->type->open(codec, tools, input, ret_opened, why);
}

int codec_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input, uint8_t *out,
                 struct why *why) {
        codec_mark(tools, codec->type->rendering);
        return codec->type->render(codec, tools, input, out, why);
}

int codec_render_piece(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                       uint64_t n_bytes, uint64_t n_skipped_bytes, uint64_t n_kept_bytes, uint8_t *out,
                       struct why *why) {
        int r = codec_memory_reserve(&tools->whole, n_bytes, why);

        if (r == 0)
                r = codec_render(codec, tools, input, tools->whole.bytes, why);
        if (r == 0)
                memcpy(out, tools->whole.bytes + n_skipped_bytes, n_kept_bytes);
        return r;
}

void codec_close(struct codec_tools *tools) {
        if (tools->close)
                tools->close(tools);
        tools->close = NULL;
}

int codec_refuse_room(const struct codec *codec, const struct codec_opened *opened, uint64_t room_bytes,
                      struct why *why) {
        return codec->type->refuse_room(codec, opened, room_bytes, why);
}

int codec_refuse_memory(const struct codec *codec, const struct codec_tools *tools, const struct codec_opened *opened,
                        uint64_t allowed_bytes, struct why *why) {
        if (!codec->type->refuse_memory) /* it is too long to be cut */
                return codec_refuse_elements(tools, opened, allowed_bytes, why);
        return codec->type->refuse_memory(tools, opened, allowed_bytes, why);
}

int codec_refuse_shape(const struct codec *codec, const struct codec_opened *opened, const int64_t *other,
                       struct why *why) {
        if (!codec->type->refuse_shape)
                return why_set(why, -EMEDIUMTYPE,
                               "has %lld rows, another sample of its batch has %lld: use ragged or pad in place of "
                               "stack, or batch_size 1",
                               (long long)opened->shape[0], (long long)other[0]);
        return codec->type->refuse_shape(opened, other, why);
}

int codec_memory_reserve(struct codec_memory *memory, size_t n_bytes, struct why *why) {
        uint8_t *bytes;

        if (memory->bytes && n_bytes <= memory->n_bytes)
                return 0;
        bytes = malloc(n_bytes > 0 ? n_bytes : 1);
        if (!bytes)
                return why_errno(why, -ENOMEM, "%zu bytes to convert its elements", n_bytes);
        free(memory->bytes);
        *memory = (struct codec_memory){ bytes, n_bytes };
        return 0;
}
