#include "daemon/codec/codec.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/labels/one_hot.h"
#include "daemon/codec/masks/array_mask.h"
#include "daemon/codec/masks/mask_planes.h"
#include "daemon/codec/pictures/shared.h"
#include "daemon/codec/plugged/plugged_codec.h"
#include "daemon/codec/sounds/sound_part.h"
#include "daemon/codec/steps/views_step.h"
#include "daemon/codec/tokens.h"
#include "daemon/decode/sound.h"
#include "daemon/sound/sound_recipe.h"
#include "proto/base/cleanup.h"
#include "proto/order/philox.h"

/* ---- making and freeing ---------------------------------------------------------------------------------------- */

static void codec_freep(struct codec **codec) {
        codec_free(*codec);
}

void codec_free(struct codec *codec) {
        if (!codec)
                return;
        recipe_free(codec->recipe);
        sound_recipe_free(codec->sound_recipe);
        value_steps_fini(&codec->steps);
        tokens_fini(codec);
        plugged_fini(codec);
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

const struct codec_type *codec_value_type(const struct codec *codec) {
        const struct codec_type *type = type_without_steps(&codec->field);

        return codec->steps.has_dtype && type == &CODEC_VALUE ? &CODEC_ELEMENTS : type;
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
        codec->type = type_without_steps(&codec->field);
        return 0;
}

/* Steps of plug-ins and tokens stand after others, which make what they work on; else the first step decides. */
static int codec_choose(struct codec *codec, const struct source *source, const struct codec_steps *steps,
                        const struct codec_named *named, struct why *why) {
        static const struct grammar_step NONE = { .name = { "", 0 } };
        const struct grammar_step *first = steps->list.n > 0 ? &steps->list.at[0] : &NONE;
        uint32_t idx_plugin = 0, idx_tokens = 0;
        int r = named ? plugin_steps_check_bare(steps->grammar, steps->list, named->plugins, why) : 0;

        if (r < 0)
                return r;
        while (idx_plugin < steps->list.n && !plugin_steps_are(&steps->list.at[idx_plugin]))
                idx_plugin++;
        while (idx_tokens < steps->list.n && !token_steps_are(&steps->list.at[idx_tokens]))
                idx_tokens++;
        if (idx_plugin < steps->list.n)
                return plugged_choose(codec, source, steps, idx_plugin, named, why);
        if (codec->field.is_gathered)
                return choose_gathered(codec, steps, why);
        if (idx_tokens < steps->list.n)
                return tokens_choose(codec, source, steps, idx_tokens, named, why);
        if (codec->field.kind == FIELD_NAME)
                return choose_by_name(codec, steps, why);
        if (sound_steps_are(first))
                return choose_sound(codec, source, steps, why);
        if (has_value_steps(codec, first))
                return choose_by_value_steps(codec, steps, why);
        return choose_by_recipe(codec, steps, why);
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
        return codec->type == &CODEC_PICTURE || plugged_is_picture(codec);
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
        static const struct codec_type *const OF_PICTURES[] = { &CODEC_PICTURE, &CODEC_BANDS, &CODEC_MASK,
                                                                &CODEC_PLANES,  &CODEC_BOXES, &CODEC_ROWS,
                                                                &CODEC_SOUND };
        static const struct codec_type *const OF_BYTES[] = { &CODEC_NUMBER, &CODEC_TEXT, &CODEC_TEXTS, &CODEC_ELEMENTS,
                                                             &CODEC_NPY };

        if (codec->type == &CODEC_PLUGGED)
                return codec_interprets(codec->plugged.before);
        for (size_t i = 0; i < ARRAY_SIZE(OF_PICTURES); i++)
                if (codec->type == OF_PICTURES[i])
                        return true;
        for (size_t i = 0; i < ARRAY_SIZE(OF_BYTES); i++)
                if (codec->type == OF_BYTES[i])
                        return codec->field.is_stored;
        return one_hot_is(codec) && codec->field.is_stored;
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

void codec_decode_alone(struct codec_tools *tools) {
        shared_give_up(tools);
}

bool codec_can_share(const struct codec *codec, const struct codec *other) {
        return shared_is_possible(codec, other);
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
        workspace_set_clock(tools->workspace, &tools->clock);
        tools->max_pixels = limits->max_pixels;
        tools->max_step_pixels = limits->max_step_pixels;
        *ret_tools = tools;
        return 0;
}

void codec_tools_free(struct codec_tools *tools) {
        if (!tools)
                return;
        decoder_free(tools->decoder);
        workspace_free(tools->workspace);
        sound_close(tools->sound);
        free(tools->shared.pixels.bytes);
        free(tools->plan_memory.bytes);
        free(tools->elements.bytes);
        free(tools->rows.bytes);
        free(tools->planes.bytes);
        free(tools->whole.bytes);
        free(tools->wave.bytes);
        token_tools_trim(&tools->tokens);
        plugin_seats_free(tools->seats);
        free(tools);
}

size_t codec_tools_bytes(const struct codec_tools *tools) {
        return decoder_scratch_bytes(tools->decoder) + workspace_bytes(tools->workspace) + tools->elements.n_bytes +
               tools->rows.n_bytes + tools->planes.n_bytes + tools->whole.n_bytes + tools->wave.n_bytes +
               token_tools_bytes(&tools->tokens) + tools->plan_memory.n_bytes +
               (shared_is_ready(tools) ? 0 : tools->shared.pixels.n_bytes) +
               (tools->seats ? plugin_seats_bytes(tools->seats) : 0);
}

static void codec_trim(struct codec_memory *memory) {
        free(memory->bytes);
        *memory = (struct codec_memory){ 0 };
}

void codec_tools_trim(struct codec_tools *tools) {
        decoder_trim(tools->decoder);
        workspace_trim(tools->workspace);
        if (!shared_is_ready(tools))
                codec_trim(&tools->shared.pixels);
        codec_trim(&tools->plan_memory);
        codec_trim(&tools->elements);
        codec_trim(&tools->rows);
        codec_trim(&tools->planes);
        codec_trim(&tools->whole);
        codec_trim(&tools->wave);
        token_tools_trim(&tools->tokens);
        if (tools->seats)
                plugin_seats_trim(tools->seats);
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

uint64_t codec_tools_beside_ns(struct codec_tools *tools) {
        return tools->seats ? plugin_seats_cpu_ns(tools->seats) : 0;
}

void codec_tools_begin_sample(struct codec_tools *tools) {
        tools->wanting.is_over = false;
        shared_forget(tools);
}

struct codec_counts codec_tools_take_counts(struct codec_tools *tools) {
        struct codec_counts counts = tools->counts;

        tools->counts = (struct codec_counts){ 0 };
        return counts;
}

void codec_tools_set_wanted(struct codec_tools *tools, bool (*is_wanted)(const void *userdata), const void *userdata) {
        workspace_set_wanted(tools->workspace, is_wanted, userdata);
        tools->wanting = (struct wanting){ .is_wanted = is_wanted, .userdata = userdata };
}

struct stage_clock *codec_tools_clock(struct codec_tools *tools) {
        return &tools->clock;
}
