#include "daemon/codec/codec_choose.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/codec_type.h"
#include "daemon/codec/masks/array_mask.h"
#include "daemon/codec/masks/mask_planes.h"
#include "daemon/codec/plugged/plugged_codec.h"
#include "daemon/codec/plugged/unpacked.h"
#include "daemon/codec/sounds/sound_part.h"
#include "daemon/codec/steps/field_steps.h"
#include "daemon/codec/texts/tokens.h"
#include "daemon/sound/sound_recipe.h"
#include "proto/base/cleanup.h"

/* Without `to`, elements are delivered as the schema describes them. */
static void describe_elements(struct codec *codec) {
        const struct value_steps *steps = &codec->steps;
        bool is_array = codec->field.kind == FIELD_VALUE && !steps->path;

        codec->dtype = steps->has_dtype ? steps->dtype : codec->field.dtype;
        codec->n_dims = steps->has_shape ? steps->n_dims : is_array ? codec->field.n_dims : 0;
        memcpy(codec->shape, steps->has_shape ? steps->shape : codec->field.shape, sizeof(codec->shape));
}

static int refuse_steps(const struct codec *codec, const char *what, struct why *why) {
        return why_set(why, -EINVAL, "pipeline: field %s %s", codec->field.name, what);
}

/* The step npy; an array that the dataset knows as a .npy file needs not name it before to(DTYPE). */
static int choose_npy(struct codec *codec, struct why *why) {
        const struct schema_field *field = &codec->field;

        if (field->kind == FIELD_VALUE && field->coding == CODING_NPY)
                codec->steps.is_npy = !codec->steps.is_raw;
        else if (codec->steps.is_npy && field->kind != FIELD_BYTES)
                return refuse_steps(codec, "is not the bytes of a .npy file: leave npy out", why);
        else if (codec->steps.is_npy && !codec->steps.has_dtype)
                return refuse_steps(codec,
                                    "is bytes to the dataset, which does not know one dtype and shape for all samples: "
                                    "name them, as in npy to(float32, shape=-1:4)",
                                    why);
        return 0;
}

static bool applies_to_texts(const struct codec *codec) {
        const struct value_steps *steps = &codec->steps;

        return !steps->path && !steps->has_dtype && !steps->is_npy &&
               (steps->is_text || (steps->is_raw && codec->field.is_stored));
}

/* Bytes may be a list of what is text in most samples. */
static bool are_texts(const struct codec *codec) {
        return codec->field.kind == FIELD_TEXTS ||
               (!codec->steps.path && (codec->field.coding == CODING_LIST || codec->field.coding == CODING_STEPS));
}

static int choose_by_value_steps(struct codec *codec, const struct codec_steps *steps, struct why *why) {
        const struct schema_field *field = &codec->field;
        bool is_number = field->kind == FIELD_VALUE || field->kind == FIELD_NUMBER;
        int r = value_steps_read(steps->grammar, steps->list, &codec->steps, why);

        if (field->kind == FIELD_TEXTS && r != -ENOMEM && (r < 0 || !applies_to_texts(codec)))
                return refuse_steps(codec,
                                    field->is_stored ? "is a list of texts: only text and raw apply"
                                                     : "is a list of texts: no step but text can be applied to it",
                                    why);
        if (!field->is_stored && !codec->steps.has_dtype && !codec->steps.is_text)
                return refuse_steps(codec, "has a value of its own: no step but to(DTYPE) can be applied to it", why);
        if (r == -EINVAL && field->kind == FIELD_SOUND)
                return refuse_steps(codec, "is sound: the first step is audio(...), or raw", why);
        if (r == -EINVAL && field->kind == FIELD_VALUE)
                return refuse_steps(codec,
                                    "is an array, and the steps are for pictures; name it without steps to get "
                                    "its elements, with to(DTYPE) to convert them, or with raw to get its "
                                    "stored bytes",
                                    why);
        if (r < 0)
                return r;
        if (field->kind == FIELD_SOUND && !codec->steps.is_raw)
                return refuse_steps(codec, "is sound: the first step is audio(...), or raw", why);
        if (!field->is_stored && (codec->steps.path || (codec->steps.has_dtype && field->kind != FIELD_VALUE)))
                return refuse_steps(codec, "is not a number", why);
        if (is_number && (codec->steps.path || codec->steps.is_text))
                return refuse_steps(codec, "is a number: only to(DTYPE) and raw apply", why);
        if (field->kind == FIELD_TEXT && field->coding != CODING_PLAIN && (codec->steps.path || codec->steps.has_dtype))
                return refuse_steps(codec, "is text in a file of JSON or CSV: no step but text and raw applies", why);
        if (field->kind == FIELD_VALUE && codec->steps.has_shape)
                return refuse_steps(codec, "has a shape of its own: leave shape out", why);
        r = choose_npy(codec, why);
        if (r < 0)
                return r;
        free(codec->text);
        codec->text = value_steps_text(&codec->steps);
        if (!codec->text)
                return why_errno(why, -ENOMEM, "pipeline");
        codec->type = codec->steps.is_raw      ? &CODEC_BYTES
                      : codec->steps.is_npy    ? &CODEC_NPY
                      : codec->steps.has_dtype ? &CODEC_ELEMENTS
                      : are_texts(codec)       ? &CODEC_TEXTS
                                               : &CODEC_TEXT; /* JSON is text, too */
        return 0;
}

static void deliver_float32(struct codec *codec) {
        codec->steps.has_dtype = codec->field.dtype != DLP_DTYPE_FLOAT32 || codec->field.coding != CODING_PLAIN;
        codec->steps.dtype = DLP_DTYPE_FLOAT32;
}

/* An array in a part with a picture. Left, top, right and bottom in pixels are boxes; x and y are points; both move. A
 * row of any other array belongs to a box, also a row of several points; it may leave with the box. The number of rows
 * then varies, even if it is the same in all samples. */
static const struct codec_type *choose_moved(struct codec *codec) {
        struct schema_field *field = &codec->field;
        bool is_boxes = field->n_dims == 2 && field->shape[1] == 4;

        codec->is_points = field->n_dims >= 2 && field->shape[field->n_dims - 1] == 2;
        if (is_boxes || codec->is_points)
                deliver_float32(codec);
        codec->is_of_boxes = !is_boxes && !(codec->is_points && field->n_dims == 2);
        if (is_boxes || (codec->is_of_boxes && recipe_drops_boxes(codec->recipe)))
                field->shape[0] = -1;
        return is_boxes ? &CODEC_BOXES : &CODEC_ROWS;
}

/* For pictures and boxes, the steps say what is done to the pixels; for others, what the bytes are. */
static int choose_by_recipe(struct codec *codec, const struct codec_steps *steps, struct why *why) {
        enum dlp_dtype mask_dtype;
        int r = recipe_read(steps->grammar, steps->list, NULL, &codec->recipe, why);

        if (r < 0)
                return r;
        free(codec->text);
        codec->text = strdup(recipe_text(codec->recipe));
        if (!codec->text)
                return why_errno(why, -ENOMEM, "pipeline");
        if (recipe_mask_dtype(codec->recipe, &mask_dtype) && array_mask_may_be(&codec->field))
                return array_mask_choose(codec, mask_dtype, why);
        if (recipe_kind(codec->recipe) != RECIPE_RAW && planes_are(&codec->field))
                return planes_choose(codec, why);
        codec->type = recipe_kind(codec->recipe) == RECIPE_RAW ? &CODEC_BYTES
                      : codec->field.kind == FIELD_VALUE       ? choose_moved(codec)
                      : recipe_format(codec->recipe)->is_bands ? &CODEC_BANDS
                                                               : &CODEC_PICTURE;
        return 0;
}

/* An array, and the steps are for a picture. */
static bool is_array_of_picture(const struct schema_field *field, const struct grammar_step *first) {
        return field->kind == FIELD_VALUE && field->n_dims > 0 && !value_steps_are(first) && recipe_has(first->name);
}

static bool has_value_steps(const struct codec *codec, const struct grammar_step *first) {
        if (codec->field.kind == FIELD_PICTURE || codec->field.kind == FIELD_MASKS ||
            is_array_of_picture(&codec->field, first))
                return false;
        return codec->field.kind != FIELD_BYTES || (value_steps_are(first) && !grammar_is(first->name, "raw"));
}

/* audio(...), and the steps after it. */
static int read_sound(struct codec *codec, const struct codec_steps *steps, struct why *why) {
        const struct grammar_steps others = { steps->list.at + 1, steps->list.n - 1 };
        struct sound_input input;
        int r = sound_steps_read(steps->grammar, &steps->list.at[0], &codec->sound, why);

        if (r < 0)
                return r;
        input = (struct sound_input){ .rate = codec->sound.rate, .n_channels = codec->sound.is_mono ? 1 : 2 };
        r = sound_recipe_read(steps->grammar, others, &input, &codec->sound_recipe, why);
        if (r == 0 && codec->sound.is_int16 && !sound_recipe_is_empty(codec->sound_recipe))
                return why_set(why, -EINVAL, "pipeline: the steps after audio need float32: leave dtype=int16 out");
        return r;
}

static int choose_sound(struct codec *codec, const struct source *source, const struct codec_steps *steps,
                        struct why *why) {
        _cleanup_(freep) char *first = NULL, *others = NULL;
        char *all = NULL;
        int r;

        if (codec->field.kind != FIELD_SOUND && (codec->field.kind != FIELD_BYTES || !codec->field.is_stored))
                return refuse_steps(codec, "is not sound: the step audio applies to stored bytes of sound files", why);
        r = read_sound(codec, steps, why);
        if (r == 0)
                r = sound_part_bind(codec, source, why);
        if (r < 0)
                return r;
        first = sound_steps_text(&codec->sound);
        others = sound_recipe_text(codec->sound_recipe);
        if (!first || !others || asprintf(&all, "%s%s", first, others) < 0)
                return why_errno(why, -ENOMEM, "pipeline");
        free(codec->text);
        codec->text = all;
        codec->type = &CODEC_SOUND;
        return 0;
}

/* A name may be called raw, because it is bytes. */
static int choose_by_name(struct codec *codec, const struct codec_steps *steps, struct why *why) {
        int r = value_steps_read(steps->grammar, steps->list, &codec->steps, why);

        codec->type = &CODEC_NAME;
        if (codec->steps.is_raw)
                return 0;
        return r == -ENOMEM ? r : refuse_steps(codec, "has a value of its own, no step can be applied to it", why);
}

/* Its pieces are elements; they can be converted, and nothing else. */
static int choose_gathered(struct codec *codec, const struct codec_steps *said, struct why *why) {
        const struct value_steps *steps = &codec->steps;
        int r = said ? value_steps_read(said->grammar, said->list, &codec->steps, why) : 0;

        codec->type = &CODEC_GATHERED;
        if (r == -ENOMEM || !said)
                return r;
        if (r < 0 || !steps->has_dtype || steps->has_shape || steps->path || steps->is_text || steps->is_raw)
                return refuse_steps(codec, "is put together from several places: no step but to(DTYPE) can be applied",
                                    why);
        free(codec->text);
        codec->text = value_steps_text(steps);
        return codec->text ? 0 : why_errno(why, -ENOMEM, "pipeline");
}

static int choose_without_steps(struct codec *codec, struct why *why) {
        if (codec->field.is_gathered)
                return choose_gathered(codec, NULL, why);
        if (codec->field.kind == FIELD_MASKS)
                return why_set(why, -EINVAL,
                               "pipeline: field %s is drawn for its picture: name both and a step, as in \"image, %s: "
                               "decode()\"",
                               codec->field.name, codec->field.name);
        codec->type = codec_value_type(codec);
        return 0;
}

/* ---- codecs that stand on another one --------------------------------------------------------------------------- */

/* A member of JSON is meant as the string that it is, and not with its quotes. */
static int choose_member(struct codec *codec, const struct source *source, const struct codec_named *named,
                         struct why *why) {
        _cleanup_(freep) char *with_text = NULL;

        if (asprintf(&with_text, "%s text", codec_text(codec->tokens.text)) < 0) {
                with_text = NULL;
                return why_errno(why, -ENOMEM, "pipeline");
        }
        codec_free(TAKE_PTR(codec->tokens.text));
        return codec_new(source, codec->idx_field, codec->group, with_text, named, &codec->tokens.text, why);
}

/* What makes text of the field; without steps, text that is stored as such. */
static int choose_text(struct codec *codec, const struct source *source, const struct codec_steps *before,
                       const struct codec_named *named, struct why *why) {
        int r;

        if (codec->field.kind != FIELD_TEXT && codec->field.kind != FIELD_BYTES)
                return why_set(why, -EINVAL,
                               "pipeline: field %s is not text: the step tokens applies to one text a sample",
                               codec->field.name);
        r = before->list.n == 0
                    ? codec_new(source, codec->idx_field, codec->group, "text", named, &codec->tokens.text, why)
                    : codec_read(source, codec->idx_field, codec->group, before, named, &codec->tokens.text, why);
        if (r == 0 && codec->tokens.text->type != &CODEC_TEXT)
                return why_set(why, -EINVAL,
                               "pipeline: field %s: before tokens, expected text, json(PATH) or nothing, of one text a "
                               "sample",
                               codec->field.name);
        if (r == 0 && codec->field.is_json && !codec->tokens.text->steps.path)
                return why_set(why, -EINVAL,
                               "pipeline: field %s is JSON, and its brackets and quotes would become tokens, too: name "
                               "the string in it, as in json(PATH) tokens(...), or write the text into a column of its "
                               "own",
                               codec->field.name);
        if (r == 0 && codec->tokens.text->steps.path && !codec->tokens.text->steps.is_text)
                r = choose_member(codec, source, named, why);
        if (r == 0)
                codec->tokens.text->is_for_tokens = true;
        return r;
}

/* Step `idx` is tokens(...); what stands before it makes text of the field. */
static int choose_tokens(struct codec *codec, const struct source *source, const struct codec_steps *steps,
                         uint32_t idx, const struct codec_named *named, struct why *why) {
        const struct codec_steps before = { steps->grammar, { steps->list.at, idx } };
        const struct grammar_steps own = { steps->list.at + idx, steps->list.n - idx };
        int r;

        codec->type = &CODEC_TOKENS;
        r = token_steps_read(steps->grammar, own, &codec->tokens.steps, why);
        if (r == 0)
                r = choose_text(codec, source, &before, named, why);
        return r < 0 ? r : tokens_settle(codec, named, why);
}

/* The steps begin with number `idx`; what is before makes their input. */
static int choose_steps(struct codec *codec, const struct source *source, const struct codec_steps *said, uint32_t idx,
                        const struct codec_named *named, struct why *why) {
        _cleanup_(freep) struct plugin_step_text *steps = calloc(PLUGIN_STEPS_A_FIELD_MAX, sizeof(*steps));
        const struct codec_steps before = { said->grammar, { said->list.at, idx } };
        const struct grammar_steps own = { said->list.at + idx, said->list.n - idx };
        uint32_t n = 0;
        int r;

        codec->type = &CODEC_PLUGGED;
        if (!steps)
                return why_errno(why, -ENOMEM, "pipeline");
        r = plugin_steps_read(said->grammar, own, named ? named->plugins : NULL, steps, &n, why);
        if (r == 0)
                r = codec_read(source, codec->idx_field, codec->group, idx > 0 ? &before : NULL, named,
                               &codec->plugged.before, why);
        return r < 0 ? r : plugged_settle(codec, source, steps, n, why);
}

/* Step `idx` is the first plugin(...). */
static int choose_plugged(struct codec *codec, const struct source *source, const struct codec_steps *steps,
                          uint32_t idx, const struct codec_named *named, struct why *why) {
        struct plugin_step_text first = { 0 };
        uint32_t next = idx + 1;
        int r;

        if (idx > 0)
                return choose_steps(codec, source, steps, idx, named, why);
        r = plugin_step_read(steps->grammar, &steps->list.at[0], named ? named->plugins : NULL, &first, why);
        if (r < 0)
                return r;
        if (plugin_table(first.plugin)->steps[first.idx_step].kind != PLUGIN_CODEC)
                return choose_steps(codec, source, steps, idx, named, why);
        while (next < steps->list.n && !plugin_steps_are(&steps->list.at[next]))
                next++;
        return next < steps->list.n ? choose_steps(codec, source, steps, next, named, why)
                                    : unpacked_choose(codec, &first, steps, why);
}

/* ---- which one ----------------------------------------------------------------------------------------------------
 */

/* Steps of plug-ins and tokens stand after others, which make what they work on; else the first step decides. */
static int codec_choose(struct codec *codec, const struct source *source, const struct codec_steps *steps,
                        const struct codec_named *named, struct why *why) {
        static const struct grammar_step NONE = { .name = { "", 0 } };
        const struct grammar_step *first = steps->list.n > 0 ? &steps->list.at[0] : &NONE;
        uint32_t idx_plugin = grammar_find(steps->list, field_step_plugin.name);
        uint32_t idx_tokens = grammar_find(steps->list, field_step_tokens.name);
        int r = named ? plugin_steps_check_bare(steps->grammar, steps->list, named->plugins, why) : 0;

        if (r < 0)
                return r;
        if (idx_plugin < steps->list.n)
                return choose_plugged(codec, source, steps, idx_plugin, named, why);
        if (codec->field.is_gathered)
                return choose_gathered(codec, steps, why);
        if (idx_tokens < steps->list.n)
                return choose_tokens(codec, source, steps, idx_tokens, named, why);
        if (codec->field.kind == FIELD_NAME)
                return choose_by_name(codec, steps, why);
        if (sound_steps_are(first))
                return choose_sound(codec, source, steps, why);
        if (has_value_steps(codec, first))
                return choose_by_value_steps(codec, steps, why);
        return choose_by_recipe(codec, steps, why);
}

static void codec_freep(struct codec **codec) {
        codec_free(*codec);
}

int codec_read(const struct source *source, uint32_t idx_field, uint32_t group, const struct codec_steps *steps,
               const struct codec_named *named, struct codec **ret_codec, struct why *why) {
        _cleanup_(codec_freep) struct codec *codec = calloc(1, sizeof(*codec));
        int r;

        if (!codec)
                return why_errno(why, -ENOMEM, "pipeline");
        codec->field = source->schema.fields[idx_field];
        snprintf(codec->name, sizeof(codec->name), "%s", codec->field.name);
        codec->idx_field = idx_field;
        codec->group = group;
        codec->idx_lead = codec->idx_boxes = codec->idx_plan_boxes = CODEC_NONE;
        codec->text = strdup("");
        if (!codec->text)
                return why_errno(why, -ENOMEM, "pipeline");
        r = steps ? codec_choose(codec, source, steps, named, why) : choose_without_steps(codec, why);
        if (r < 0)
                return r;
        describe_elements(codec);
        *ret_codec = TAKE_PTR(codec);
        return 0;
}

int codec_new(const struct source *source, uint32_t idx_field, uint32_t group, const char *text,
              const struct codec_named *named, struct codec **ret_codec, struct why *why) {
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        struct codec_steps steps;
        int r;

        if (!text)
                return codec_read(source, idx_field, group, NULL, named, ret_codec, why);
        r = grammar_new("pipeline", text, &grammar, why);
        if (r < 0)
                return r;
        steps.grammar = grammar;
        if (grammar_steps(grammar, grammar_all(grammar), &steps.list) < 0)
                return why_errno(why, -ENOMEM, "pipeline");
        return codec_read(source, idx_field, group, &steps, named, ret_codec, why);
}
