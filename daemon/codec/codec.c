#include "daemon/codec/codec.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/codec/codec_type.h"
#include "proto/base/cleanup.h"

/* ---- making and freeing ---------------------------------------------------------------------------------------- */

static void codec_freep(struct codec **codec) {
        codec_free(*codec);
}

void codec_free(struct codec *codec) {
        if (!codec)
                return;
        recipe_free(codec->recipe);
        free(codec->text);
        free(codec);
}

static const struct codec_type *type_without_steps(enum field_kind kind) {
        switch (kind) {
        case FIELD_VALUE:
                return &CODEC_VALUE;
        case FIELD_NUMBER:
                return &CODEC_NUMBER;
        default:
                return &CODEC_BYTES;
        }
}

/* For stored bytes, the steps say what to do. */
static int choose_stored(struct codec *codec, const char *text, struct why *why) {
        int r;

        if (!text) {
                codec->type = type_without_steps(codec->field.kind);
                return 0;
        }
        r = recipe_parse(text, &codec->recipe, why);
        if (r < 0)
                return r;
        if (codec->field.kind == FIELD_VALUE && recipe_kind(codec->recipe) != RECIPE_RAW)
                return why_set(
                        why, -EINVAL,
                        "pipeline: field %s is an array, and the steps are for pictures; name it without steps to "
                        "get its elements, or with raw to get its stored bytes",
                        codec->field.name);
        free(codec->text);
        codec->text = strdup(recipe_text(codec->recipe));
        codec->type = recipe_kind(codec->recipe) == RECIPE_RAW ? &CODEC_BYTES : &CODEC_PICTURE;
        return codec->text ? 0 : why_errno(why, -ENOMEM, "pipeline");
}

/* A value that the dataset knows has its final form already. A name may be called raw, because it is bytes. */
static int choose_known(struct codec *codec, const char *text, struct why *why) {
        int r = 0;

        codec->type = codec->field.kind == FIELD_NAME ? &CODEC_NAME : &CODEC_VALUE;
        if (text && codec->field.kind == FIELD_NAME)
                r = recipe_parse(text, &codec->recipe, why);
        if (r < 0 || !text || (codec->recipe && recipe_kind(codec->recipe) == RECIPE_RAW))
                return r;
        return why_set(why, -EINVAL, "pipeline: field %s has a value of its own, no step can be applied to it",
                       codec->field.name);
}

int codec_new(const struct source *source, uint32_t idx_field, uint32_t group, const char *text,
              struct codec **ret_codec, struct why *why) {
        _cleanup_(codec_freep) struct codec *codec = calloc(1, sizeof(*codec));
        int r;

        if (!codec)
                return why_errno(why, -ENOMEM, "pipeline");
        codec->field = source->schema.fields[idx_field];
        codec->idx_field = idx_field;
        codec->group = group;
        codec->text = strdup("");
        if (!codec->text)
                return why_errno(why, -ENOMEM, "pipeline");
        r = codec->field.is_stored ? choose_stored(codec, text, why) : choose_known(codec, text, why);
        if (r < 0)
                return r;
        *ret_codec = TAKE_PTR(codec);
        return 0;
}

uint32_t codec_field(const struct codec *codec) {
        return codec->idx_field;
}

bool codec_is_stored(const struct codec *codec) {
        return codec->field.is_stored;
}

bool codec_is_row(const struct codec *codec) {
        return codec->type == &CODEC_VALUE && codec->field.is_stored;
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
        snprintf(form.name, sizeof(form.name), "%s", codec->field.name);
        *ret_form = form;
        return 0;
}

/* ---- a sample -------------------------------------------------------------------------------------------------- */

int codec_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
               struct codec_opened *ret_opened, struct why *why) {
        return codec->type->open(codec, tools, input, ret_opened, why);
}

int codec_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input, uint8_t *out,
                 struct why *why) {
        return codec->type->render(codec, tools, input, out, why);
}

void codec_close(const struct codec *codec, struct codec_tools *tools) {
        if (codec->type->close)
                codec->type->close(tools);
}

int codec_refuse_room(const struct codec *codec, const struct codec_opened *opened, const struct field_layout *field,
                      struct why *why) {
        return codec->type->refuse_room(codec, opened, field, why);
}

int codec_refuse_memory(const struct codec *codec, const struct codec_tools *tools, const struct codec_opened *opened,
                        uint64_t allowed_bytes, struct why *why) {
        return codec->type->refuse_memory(tools, opened, allowed_bytes, why);
}

int codec_refuse_shape(const struct codec *codec, const struct codec_opened *opened, const int64_t *other,
                       struct why *why) {
        return codec->type->refuse_shape(opened, other, why);
}

/* ---- a worker's tools ------------------------------------------------------------------------------------------ */

int codec_tools_new(const struct decode_limits *limits, enum decode_jpeg jpeg, struct codec_tools **ret_tools,
                    struct why *why) {
        struct codec_tools *tools = calloc(1, sizeof(*tools));
        int r;

        if (!tools)
                return why_errno(why, -ENOMEM, "a worker's tools");
        r = decoder_new(limits, jpeg, &tools->decoder, why);
        if (r == 0)
                r = workspace_new(RESIZE_CODE_BEST, &tools->workspace, why);
        if (r < 0) {
                codec_tools_free(tools);
                return r;
        }
        *ret_tools = tools;
        return 0;
}

void codec_tools_free(struct codec_tools *tools) {
        if (!tools)
                return;
        decoder_free(tools->decoder);
        workspace_free(tools->workspace);
        free(tools);
}

size_t codec_tools_bytes(const struct codec_tools *tools) {
        return decoder_scratch_bytes(tools->decoder) + workspace_bytes(tools->workspace);
}

void codec_tools_trim(struct codec_tools *tools) {
        decoder_trim(tools->decoder);
        workspace_trim(tools->workspace);
}

struct codec_counts codec_tools_take_counts(struct codec_tools *tools) {
        struct codec_counts counts = tools->counts;

        tools->counts = (struct codec_counts){ 0 };
        return counts;
}
