#include "daemon/codec/program.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/augment/recipe.h"
#include "daemon/codec/labels/one_hot.h"
#include "daemon/codec/masks/array_mask.h"
#include "daemon/codec/masks/mask_name.h"
#include "daemon/codec/steps/own_step.h"
#include "daemon/codec/steps/views_step.h"
#include "daemon/collate/collation.h"
#include "daemon/data/field_name.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/step_text.h"
#include "proto/base/typed.h"

#define BLANKS " \t\r\n"

struct program {
        uint32_t n_fields;
        struct codec *codecs[DLP_TENSORS_MAX];
        struct collation collations[DLP_TENSORS_MAX]; /* of each field */
        struct own_step owns[DLP_TENSORS_MAX];        /* likewise, if it has one */
        struct views views[DLP_TENSORS_MAX];          /* of each field's part */
        uint32_t mix_pictures[DLP_TENSORS_MAX];       /* the one with which each field is mixed, or FIELD_NONE */
        size_t renamed[DLP_TENSORS_MAX];              /* the column of its name, if the part gives it one; 0: none */
        uint32_t serving[DLP_TENSORS_MAX];            /* program_serving() */
        struct tokenizers *tokenizers;                /* while it is parsed */
        char *text;
};

static void program_freep(struct program **program) {
        program_free(*program);
}

void program_free(struct program *program) {
        if (!program)
                return;
        for (uint32_t i = 0; i < program->n_fields; i++)
                codec_free(program->codecs[i]);
        free(program->text);
        free(program);
}

const char *program_text(const struct program *program) {
        return program->text;
}

const struct own_step *program_own(const struct program *program, uint32_t idx) {
        return program->owns[idx].function[0] ? &program->owns[idx] : NULL;
}

/* Does nothing come after the steps of the codec that needs their result here? */
static bool is_last_to_change(const struct program *program, uint32_t idx) {
        return collation_is_stack(&program->collations[idx]) && !program_own(program, idx);
}

bool program_can_leave_form(const struct program *program, uint32_t idx) {
        return is_last_to_change(program, idx) && codec_can_leave_form(program->codecs[idx]);
}

void program_leave_form(struct program *program, uint32_t idx) {
        codec_leave_form(program->codecs[idx]);
}

bool program_can_leave_operations(const struct program *program, uint32_t idx) {
        return is_last_to_change(program, idx) && codec_can_leave_operations(program->codecs[idx]);
}

void program_leave_operations(struct program *program, uint32_t idx) {
        codec_leave_operations(program->codecs[idx]);
}

uint32_t program_n_fields(const struct program *program) {
        return program->n_fields;
}

const struct codec *program_codec(const struct program *program, uint32_t idx) {
        return program->codecs[idx];
}

uint32_t program_serving(const struct program *program, uint32_t k) {
        return program->serving[k];
}

const struct packing_terms *program_packing(const struct program *program, uint32_t *ret_idx) {
        for (uint32_t i = 0; i < program->n_fields; i++)
                if (collation_is_pack(&program->collations[i])) {
                        *ret_idx = i;
                        return &program->collations[i].pack;
                }
        return NULL;
}

int program_form(const struct program *program, uint32_t idx, const struct codec_terms *terms,
                 struct field_form *ret_form, struct why *why) {
        int r = codec_form(program->codecs[idx], terms, ret_form, why);

        if (r == 0 && program_own(program, idx))
                r = own_step_apply(program_own(program, idx), ret_form, why);
        if (r < 0)
                return r;
        ret_form->mix_picture = program->mix_pictures[idx];
        return collation_apply(&program->collations[idx], ret_form, why);
}

/* 0: needs no other field; 1: boxes; 2: what leaves with boxes. */
static unsigned level_of(const struct codec *codec) {
        return codec_boxes(codec) != CODEC_NONE ? 2 : codec_lead(codec) != CODEC_NONE;
}

static void order_fields(struct program *program) {
        uint32_t n = 0;

        for (unsigned level = 0; level <= 2; level++)
                for (uint32_t i = 0; i < program->n_fields; i++)
                        if (level_of(program->codecs[i]) == level)
                                program->serving[n++] = i;
}

/* ---- fields ---------------------------------------------------------------------------------------------------- */

/* For messages: "image, caption, label". */
static void list_fields(const struct schema *schema, bool only_stored, char *text, size_t size) {
        size_t n = 0;

        text[0] = '\0';
        for (uint32_t i = 0; i < schema->n_fields && n < size; i++)
                if (schema->fields[i].is_stored || !only_stored)
                        n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", schema->fields[i].name);
}

/* The characters of a field's name: those that formats use, with dots, dashes and slashes ("image/encoded"). */
static size_t name_length(const char *text) {
        size_t n = 0;

        while (isalnum((unsigned char)text[n]) || (text[n] && strchr("_.-/", text[n])))
                n++;
        return n;
}

static int refuse_long_name(const char *name, size_t column, const char *field, struct why *why) {
        return why_set(why, -EINVAL,
                       "pipeline, column %zu: \"%s\" is longer than the %u characters that a field's name may have: "
                       "rename field %s with fields= of the dataset",
                       column, name, DLP_TENSOR_NAME_MAX - 1, field);
}

/* What the fields of a part have in common while they are added. */
struct adding {
        const char *steps; /* NULL: none */
        const char *name;  /* that the field gets, of n_name characters; NULL: its own */
        size_t n_name;
        size_t column; /* of the name in the text */
        uint32_t group;
        struct views views;
        struct own_step own;
        uint32_t view;                     /* the one that is added */
        const struct collation *collation; /* NULL: none */
};

/* Is it mixed with a picture, whose steps are not for it? An array of several rows is: it may be boxes or points. */
static bool is_beside_picture(const struct schema_field *field, const char *steps) {
        return steps && recipe_begins(steps + strspn(steps, BLANKS)) &&
               (field->kind == FIELD_NUMBER || (field->kind == FIELD_VALUE && field->n_dims <= 1));
}

/* The codec of a field of a part whose samples are mixed: a label becomes a row of probabilities. */
static int new_mixed(struct program *program, const struct source *source, uint32_t idx_field,
                     const struct adding *adding, struct codec **codec, struct why *why) {
        const struct schema_field *field = &source->schema.fields[idx_field];
        const struct mix_terms *mix = &adding->collation->mix;
        bool is_label = one_hot_may_be(field);
        int r = codec_new(source, idx_field, adding->group,
                          is_label || is_beside_picture(field, adding->steps) ? NULL : adding->steps,
                          program->tokenizers, codec, why);

        if (r < 0 || !is_label)
                return r;
        if (mix->n_classes > 0) {
                one_hot_set(*codec, mix->n_classes, mix->smoothing);
                return 0;
        }
        codec_free(*codec);
        *codec = NULL;
        return why_set(why, -EINVAL,
                       "pipeline, column %zu: the labels in field %s are numbers, and to mix them it has to be known "
                       "how many classes there are: write num_classes=N",
                       adding->collation->column, field->name);
}

static int set_view(struct codec *codec, const struct adding *adding, const char *field, struct why *why) {
        char name[2 * DLP_TENSOR_NAME_MAX], first[DLP_TENSOR_NAME_MAX];

        if (adding->name && codec_set_name(codec, adding->name, adding->n_name) < 0)
                return why_set(
                        why, -EINVAL,
                        "pipeline, column %zu: \"%.*s\" is longer than the %u characters that a field's name may "
                        "have",
                        adding->column, word_shown(adding->n_name), adding->name, DLP_TENSOR_NAME_MAX - 1);
        strcpy(first, codec_name(codec));
        if (codec_set_view(codec, adding->view) == 0)
                return 0;
        snprintf(name, sizeof(name), "%s_%u", first, adding->view + 1);
        return refuse_long_name(name, adding->views.column, field, why);
}

/* Of these views, one is a field of its own; else the text says NAME=FIELD for one of the two. */
static int check_twice(const struct program *program, const char *field, const struct adding *adding, struct why *why) {
        const struct codec *codec = program->codecs[program->n_fields - 1];

        for (uint32_t i = 0; i + 1 < program->n_fields; i++)
                if (codec_field(program->codecs[i]) == codec_field(codec) &&
                    codec_view(program->codecs[i]) == codec_view(codec) &&
                    strcmp(codec_name(program->codecs[i]), codec_name(codec)) == 0)
                        return why_set(why, -EINVAL,
                                       "pipeline: field %s is named twice%s; to deliver it twice, give one of them a "
                                       "name of its own, as in \"small=%s: resize(64:64)\"",
                                       codec_name(codec), adding->name ? ", with one name" : "", field);
        return 0;
}

static int add_field(struct program *program, const struct source *source, uint32_t idx_field,
                     const struct adding *adding, struct why *why) {
        const char *name = source->schema.fields[idx_field].name;
        struct codec **codec = &program->codecs[program->n_fields];
        int r;

        if (program->n_fields == DLP_TENSORS_MAX)
                return why_set(
                        why, -EINVAL, "pipeline: more than %u fields, which is the limit of a batch%s", DLP_TENSORS_MAX,
                        adding->view > 0 || codec_view(program->codecs[DLP_TENSORS_MAX - 1]) > 0 ? "; each view is one"
                                                                                                 : "");
        r = adding->collation && collation_mixes(adding->collation)
                    ? new_mixed(program, source, idx_field, adding, codec, why)
                    : codec_new(source, idx_field, adding->group, adding->steps, program->tokenizers, codec, why);
        if (r < 0)
                return r;
        program->owns[program->n_fields] = adding->own;
        program->mix_pictures[program->n_fields] = FIELD_NONE;
        for (uint32_t i = 0; i < program->n_fields; i++)
                if (codec_field(program->codecs[i]) == idx_field)
                        codec_set_again(*codec);
        program->renamed[program->n_fields] = adding->name ? adding->column : 0;
        program->views[program->n_fields++] = adding->views;
        r = set_view(*codec, adding, name, why);
        return r < 0 ? r : check_twice(program, name, adding, why);
}

static int refuse_dropping(uint32_t n_boxes, struct why *why) {
        return why_set(
                why, -EINVAL,
                "pipeline: sanitize drops boxes, and its part names %s; name one field of boxes with the picture, "
                "as in \"image, boxes, labels: hflip(0.5) sanitize\"",
                n_boxes == 0 ? "none" : "several fields of them");
}

/* ---- collations ------------------------------------------------------------------------------------------------ */

/* The fields from `begin` on are a part with this collation. */
static void collate_part(struct program *program, uint32_t begin, const struct collation *collation) {
        bool has_pictures = false;

        for (uint32_t i = begin; i < program->n_fields; i++)
                has_pictures |= codec_is_picture(program->codecs[i]);
        for (uint32_t i = begin; i < program->n_fields; i++)
                if (!has_pictures || collation_mixes(collation) || codec_is_picture(program->codecs[i]) ||
                    codec_is_mask(program->codecs[i]))
                        program->collations[i] = *collation;
}

/* Masks and boxes would no longer fit pictures that are mixed. */
static bool moves_along(const struct codec *codec) {
        return codec_is_boxes(codec) || codec_is_points(codec) || codec_is_mask(codec) || codec_is_planes(codec);
}

static int refuse_cut(const struct collation *collation, uint32_t n_pictures, struct why *why) {
        return why_set(why, -EINVAL,
                       "pipeline, column %zu: a box is cut out of one picture of each sample, and the part names %s: "
                       "name one picture and its label, as in \"image, label: ...\"",
                       collation->column, n_pictures == 0 ? "none" : "several");
}

/* The fields from `begin` on are mixed; those of one view with one another. Is it clear with which picture, and are
 * their labels among them? */
static int check_mixed(struct program *program, uint32_t begin, uint32_t view, const struct collation *collation,
                       struct why *why) {
        uint32_t n_pictures = 0, idx_picture = FIELD_NONE, n_labels = 0;
        const struct mix_terms *mix = &collation->mix;

        for (uint32_t i = begin; i < program->n_fields; i++) {
                const struct codec *codec = program->codecs[i];

                if (codec_view(codec) != view)
                        continue;
                if (moves_along(codec))
                        return why_set(why, -EINVAL,
                                       "pipeline, column %zu: field %s moves with its picture, and cannot be mixed as "
                                       "pictures and labels are: name it and the picture without %s",
                                       collation->column, codec_name(codec), collation_name(collation));
                n_labels += one_hot_is(codec);
                n_pictures += codec_is_picture(codec);
                if (codec_is_picture(codec))
                        idx_picture = i;
        }
        if (mix_cuts(mix) > 0 && n_pictures != 1)
                return refuse_cut(collation, n_pictures, why);
        if (mix->n_classes > 0 && n_labels == 0)
                return why_set(why, -EINVAL,
                               "pipeline, column %zu: num_classes=%u is for labels, which are mixed as the pictures "
                               "are, and the part names none: name the label with the picture, as in \"image, label: "
                               "...\"",
                               collation->column, mix->n_classes);
        for (uint32_t i = begin; i < program->n_fields; i++)
                if (codec_view(program->codecs[i]) == view)
                        program->mix_pictures[i] = idx_picture;
        return 0;
}

/* cu_seqlens comes with the first packed field. All of them lie in the same rows. */
static int settle_packing(struct program *program, struct why *why) {
        struct collation *first = NULL;

        for (uint32_t i = 0; i < program->n_fields; i++) {
                struct collation *collation = &program->collations[i];

                if (!collation_is_pack(collation))
                        continue;
                if (!first) {
                        first = collation;
                        first->pack.has_seqlens = true;
                } else if (!collation_packs_alike(first, collation)) {
                        return why_set(why, -EINVAL,
                                       "pipeline, column %zu: pack: all packed fields share their rows; give each the "
                                       "arguments of the first one, except value and labels",
                                       collation->column);
                }
        }
        return 0;
}

static void name_added(const char *field, const char *added, char name[2 * DLP_TENSOR_NAME_MAX]) {
        bool is_whole = added[0] == COLLATION_WHOLE_NAME[0];

        snprintf(name, 2 * DLP_TENSOR_NAME_MAX, "%s%s%s", is_whole ? "" : field, is_whole ? "" : "_", added + is_whole);
}

/* A tensor that comes with a field has a name and a place among the others. */
static int check_added(const struct program *program, struct why *why) {
        uint32_t n_tensors = program->n_fields;
        char name[2 * DLP_TENSOR_NAME_MAX];

        for (uint32_t i = 0; i < program->n_fields; i++) {
                const char *field = codec_name(program->codecs[i]);

                for (unsigned k = 0; k < collation_n_added(&program->collations[i]); k++) {
                        name_added(field, collation_added(&program->collations[i], k), name);
                        if (strlen(name) >= DLP_TENSOR_NAME_MAX)
                                return refuse_long_name(name, program->collations[i].column, field, why);
                        for (uint32_t other = 0; other < program->n_fields; other++)
                                if (strcmp(codec_name(program->codecs[other]), name) == 0)
                                        return why_set(why, -EINVAL,
                                                       "pipeline, column %zu: %s would come with field %s, and field "
                                                       "%s of the dataset is named as well: rename one of them with "
                                                       "fields= of the dataset",
                                                       program->collations[i].column, name, field, name);
                        n_tensors++;
                }
        }
        if (n_tensors > DLP_TENSORS_MAX)
                return why_set(why, -EINVAL,
                               "pipeline: with masks and labels there are %u fields; a batch has %u at "
                               "most",
                               n_tensors, DLP_TENSORS_MAX);
        return 0;
}

/* ---- views ----------------------------------------------------------------------------------------------------- */

/* The fields from `begin` on are the first view of a part: may it have more? */
static int check_views(const struct program *program, uint32_t begin, const struct views *views, struct why *why) {
        bool has_pictures = false;

        if (views->n == 0)
                return 0;
        for (uint32_t i = begin; i < program->n_fields; i++)
                has_pictures |= codec_is_picture(program->codecs[i]);
        if (!has_pictures)
                return why_set(why, -EINVAL,
                               "pipeline, column %zu: views are of pictures, and the part of field %s decodes none: "
                               "write views after the steps of a picture, as in \"random_resized_crop(224) hflip(0.5) "
                               "views(%u)\"",
                               views->column, codec_name(program->codecs[begin]), views->n);
        if (codec_drops_boxes(program->codecs[begin]))
                return why_set(
                        why, -EINVAL,
                        "pipeline, column %zu: each view would keep other boxes with sanitize, and which rows "
                        "stay is known for one of them only: leave sanitize out, or open a loader for each view, "
                        "with draws=0, draws=1 and so on",
                        views->column);
        return 0;
}

/* Is there another field with the name that the text gives this one? */
static int check_renamed(const struct program *program, uint32_t idx, const struct source *source, struct why *why) {
        const char *name = codec_name(program->codecs[idx]);

        for (uint32_t other = 0; other < program->n_fields && program->renamed[idx] > 0; other++)
                if (other != idx && strcmp(name, codec_name(program->codecs[other])) == 0)
                        return why_set(why, -EINVAL,
                                       "pipeline, column %zu: field %s would be called %s, and another field is "
                                       "delivered by that name: choose another one",
                                       program->renamed[idx],
                                       source->schema.fields[codec_field(program->codecs[idx])].name, name);
        return 0;
}

/* Views have names of their own, which no other tensor may have. */
static int check_view_names(const struct program *program, const struct source *source, struct why *why) {
        for (uint32_t i = 0; i < program->n_fields; i++) {
                const struct codec *codec = program->codecs[i];
                int r = check_renamed(program, i, source, why);

                if (r < 0)
                        return r;
                for (uint32_t other = 0; other < program->n_fields && codec_view(codec) > 0; other++)
                        if (other != i && strcmp(codec_name(codec), codec_name(program->codecs[other])) == 0)
                                return why_set(why, -EINVAL,
                                               "pipeline, column %zu: view %u of field %s would be called %s, and a "
                                               "field %s of the dataset is delivered as well: rename one of them with "
                                               "fields= of the dataset",
                                               program->views[i].column, codec_view(codec) + 1,
                                               source->schema.fields[codec_field(codec)].name, codec_name(codec),
                                               codec_name(codec));
        }
        return 0;
}

/* What follows the steps of a part, if the text says it; the caller frees it. NULL: no memory. */
static char *print_ending(const struct own_step *own, const struct collation *collation, const struct views *views) {
        _cleanup_(freep) char *last = collation && collation->type ? collation_text(collation) : strdup("");
        char *text = NULL;
        size_t size;
        FILE *stream = last ? open_memstream(&text, &size) : NULL;

        if (!stream)
                return NULL;
        if (own->function[0])
                own_step_print(own, stream);
        fprintf(stream, "%s%s", own->function[0] && last[0] ? " " : "", last);
        if (views->n > 0)
                fprintf(stream, "%sviews(%u)", own->function[0] || last[0] ? " " : "", views->n);
        if (fclose(stream) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

/* ---- without names --------------------------------------------------------------------------------------------- */

/* A field of fixed size that every sample has, whether it is stored or known. */
static bool is_value(const struct schema_field *field) {
        if (field->is_on_demand || field->may_be_absent ||
            (field->kind == FIELD_VALUE && field->n_dims > 0 && field->shape[0] < 0))
                return false;
        return field->kind == FIELD_VALUE || field->kind == FIELD_NUMBER;
}

static bool has_steps(const struct schema_field *field) {
        return field->is_stored && (field->kind == FIELD_PICTURE || field->kind == FIELD_SOUND ||
                                    field->kind == FIELD_BYTES || field->kind == FIELD_TEXT);
}

/* The dataset's only picture, or else its only field of stored bytes or text. */
static int find_main(const struct schema *schema, uint32_t *ret_idx, struct why *why) {
        uint32_t n_pictures = 0, n_stored = 0, idx_picture = 0, idx_stored = 0;
        char names[256];

        for (uint32_t i = 0; i < schema->n_fields; i++) {
                if (!has_steps(&schema->fields[i]))
                        continue;
                n_stored++;
                idx_stored = i;
                if (schema->fields[i].kind == FIELD_PICTURE) {
                        n_pictures++;
                        idx_picture = i;
                }
        }
        if (n_stored == 0) {
                list_fields(schema, false, names, sizeof(names));
                return why_set(why, -EINVAL,
                               "pipeline: the steps are for a picture, and the dataset has none; its fields are %s: "
                               "name those that you want, or leave the pipeline out",
                               names);
        }
        if (n_pictures != 1 && n_stored != 1) {
                list_fields(schema, true, names, sizeof(names));
                return why_set(why, -EINVAL,
                               "pipeline: the dataset has several fields that are read: %s: say which field the steps "
                               "are for, as in \"%s: ...\"",
                               names, schema->fields[idx_stored].name);
        }
        *ret_idx = n_pictures == 1 ? idx_picture : idx_stored;
        return 0;
}

/* A dataset of texts and numbers, without pictures: `raw`, which is what a job without a pipeline gets, delivers all
 * fields, each as it is. */
static bool is_table(const struct schema *schema) {
        uint32_t n_bytes = 0, n_others = 0;

        for (uint32_t i = 0; i < schema->n_fields; i++) {
                bool is_stored_bytes = schema->fields[i].kind == FIELD_BYTES && schema->fields[i].is_stored;

                if (schema->fields[i].kind == FIELD_PICTURE)
                        return false;
                n_bytes += is_stored_bytes;
                n_others += !is_stored_bytes && schema->fields[i].kind != FIELD_NAME && !is_value(&schema->fields[i]) &&
                            !schema->fields[i].is_on_demand;
        }
        return n_bytes != 1 || n_others > 0;
}

static bool is_field(const struct schema *schema, const char *word, size_t n) {
        for (uint32_t i = 0; i < schema->n_fields; i++)
                if (word_is(word, n, schema->fields[i].name))
                        return true;
        return false;
}

static bool is_raw(const char *text) {
        text += strspn(text, BLANKS);
        if (!word_is(text, name_length(text), "raw"))
                return false;
        text += strlen("raw");
        if (strncmp(text, "()", 2) == 0)
                text += 2;
        return text[strspn(text, BLANKS)] == '\0';
}

static uint32_t count_fields(const struct program *program, uint32_t begin, bool (*is)(const struct codec *codec),
                             uint32_t *ret_idx_last) {
        uint32_t n = 0;

        for (uint32_t i = begin; i < program->n_fields; i++)
                if (is(program->codecs[i])) {
                        n++;
                        *ret_idx_last = i;
                }
        return n;
}

/* A dtype for masks is a mistake where there are none, and those of instances have only one. */
static int check_mask_dtype(const struct program *program, const struct source *source, uint32_t begin,
                            struct why *why) {
        const char *dtype = codec_mask_dtype(program->codecs[begin]);
        uint32_t idx = 0;

        if (!dtype)
                return 0;
        if (count_fields(program, begin, codec_is_planes, &idx) > 0)
                return why_set(why, -EINVAL,
                               "pipeline: field %s is masks of instances, which are delivered as uint8: leave mask=%s "
                               "out, or name the field in a part of its own",
                               source->schema.fields[codec_field(program->codecs[idx])].name, dtype);
        if (count_fields(program, begin, codec_is_mask, &idx) == 0)
                return why_set(why, -EINVAL,
                               "pipeline: mask=%s is for masks, and its part names none: name one with its picture, as "
                               "in \"image, mask: decode(mask=%s)\"",
                               dtype, dtype);
        return 0;
}

/* The text that means the same when it comes back: a step without arguments may be called as a field is. */
static int print_unnamed(struct program *program, const struct source *source, bool no_main, struct why *why) {
        const char *steps = no_main ? "raw" : codec_text(program->codecs[0]);
        _cleanup_(freep) char *last = print_ending(&program->owns[0], &program->collations[0], &program->views[0]),
                              *text = NULL;

        if (!last || asprintf(&text, "%s%s%s", steps, steps[0] && last[0] ? " " : "", last) < 0) {
                text = NULL;
                return why_errno(why, -ENOMEM, "pipeline");
        }
        if (asprintf(&program->text, "%s%s", text, is_field(&source->schema, text, strlen(text)) ? "()" : "") >= 0)
                return 0;
        program->text = NULL;
        return why_errno(why, -ENOMEM, "pipeline");
}

/* Without names the label is the only whole number that is delivered. */
static int find_label(const struct source *source, const struct collation *collation, uint32_t *ret_idx,
                      struct why *why) {
        uint32_t n = 0;

        *ret_idx = source->schema.n_fields;
        if (!collation_mixes(collation))
                return 0;
        for (uint32_t i = 0; i < source->schema.n_fields; i++)
                if (is_value(&source->schema.fields[i]) && one_hot_may_be(&source->schema.fields[i])) {
                        n++;
                        *ret_idx = i;
                }
        return n < 2 ? 0
                     : why_set(why, -EINVAL,
                               "pipeline, column %zu: %s mixes labels as well, and several fields could be the label: "
                               "name the one that is, with the picture, as in \"image, %s: ...\"",
                               collation->column, collation_name(collation), source->schema.fields[*ret_idx].name);
}

/* The field that the steps are for, in all its views. */
static int add_main(struct program *program, const struct source *source, struct adding *adding,
                    const struct collation *collation, struct why *why) {
        uint32_t idx_main = 0;
        int r = find_main(&source->schema, &idx_main, why);

        if (r == 0)
                r = add_field(program, source, idx_main, adding, why);
        if (r == 0 && codec_drops_boxes(program->codecs[0]))
                r = refuse_dropping(0, why);
        if (r == 0)
                r = check_mask_dtype(program, source, 0, why);
        if (r == 0)
                r = check_views(program, 0, &adding->views, why);
        for (adding->view = 1; adding->view < adding->views.n && r == 0; adding->view++)
                r = add_field(program, source, idx_main, adding, why);
        for (uint32_t i = 0; i < program->n_fields; i++)
                program->collations[i] = *collation;
        return r;
}

/* A function and a collation at the end of a part, and where the steps before them end. */
static int take_ending(const char *text, size_t begin, size_t *steps_end, struct own_step *ret_own,
                       struct collation *ret_collation, struct why *why) {
        int r = collation_take(text, begin, *steps_end, ret_collation, steps_end, why);

        if (r == 0)
                r = own_step_take(text, begin, *steps_end, ret_own, steps_end, why);
        if (r == 0 && ret_own->function[0] && !collation_is_stack(ret_collation))
                r = why_set(why, -EINVAL,
                            "pipeline, column %zu: what a function delivers has one shape and is stacked: leave what "
                            "follows python(%s) out",
                            ret_collation->column, ret_own->function);
        return r;
}

/* The label that is mixed with the main field, in all its views. */
static int add_label(struct program *program, const struct source *source, uint32_t idx_label, struct adding *adding,
                     struct why *why) {
        uint32_t n_views = adding->views.n > 0 ? adding->views.n : 1;
        int r = 0;

        for (adding->view = 0; adding->view < n_views && r == 0; adding->view++) {
                r = add_field(program, source, idx_label, adding, why);
                if (r == 0)
                        program->collations[program->n_fields - 1] = *adding->collation;
        }
        return r;
}

static int parse_unnamed(struct program *program, const struct source *source, const char *text, struct why *why) {
        static const struct adding AS_IT_IS;
        bool no_main = is_raw(text) && is_table(&source->schema);
        uint32_t idx_main = source->schema.n_fields, idx_label = idx_main;
        struct adding adding = { 0 };
        struct collation collation;
        _cleanup_(freep) char *steps = NULL;
        size_t steps_end;
        int r = views_take(text, 0, strlen(text), &adding.views, &steps_end, why);

        if (r == 0)
                r = take_ending(text, 0, &steps_end, &adding.own, &collation, why);
        if (r < 0)
                return r;
        steps = strndup(text, steps_end);
        if (!steps)
                return why_errno(why, -ENOMEM, "pipeline");
        if ((!collation.type && adding.views.n == 0 && !adding.own.function[0]) || strspn(steps, BLANKS) < steps_end)
                adding.steps = steps;
        adding.collation = &collation;
        r = find_label(source, &collation, &idx_label, why);
        if (!no_main && r == 0) {
                r = add_main(program, source, &adding, &collation, why);
                idx_main = r == 0 ? codec_field(program->codecs[0]) : idx_main;
        }
        if (idx_label < source->schema.n_fields && idx_label != idx_main && r == 0)
                r = add_label(program, source, idx_label, &adding, why);
        for (uint32_t view = 0; (view == 0 || view < adding.views.n) && collation_mixes(&collation) && r == 0; view++)
                r = check_mixed(program, 0, view, &collation, why);
        for (uint32_t i = 0; i < source->schema.n_fields && r == 0; i++)
                if (no_main ? source->schema.fields[i].kind != FIELD_NAME &&
                                      source->schema.fields[i].kind != FIELD_MASKS &&
                                      !source->schema.fields[i].is_on_demand
                            : is_value(&source->schema.fields[i]) && i != idx_main && i != idx_label)
                        r = add_field(program, source, i, &AS_IT_IS, why);
        return r < 0 ? r : print_unnamed(program, source, no_main, why);
}

/* ---- with names ------------------------------------------------------------------------------------------------ */

/* A part of the text, and where its steps begin. */
struct part {
        size_t begin, end; /* of the whole text */
        size_t steps;      /* after the ':', or `end` */
        size_t steps_end;  /* where the collation or views begin, or `end` */
        struct own_step own;
        struct collation collation;
        struct views views;
};

/* The next `wanted` before `end` that is not in parentheses; else `end`. */
static size_t find_outside(const char *text, size_t begin, size_t end, char wanted) {
        unsigned depth = 0;

        for (size_t i = begin; i < end; i++) {
                if (text[i] == wanted && depth == 0)
                        return i;
                depth += text[i] == '(';
                depth -= text[i] == ')' && depth > 0;
        }
        return end;
}

/* The parser of steps counts its columns from the beginning of the text, so everything outside this part becomes
 * blanks. */
static char *blank_but(const char *text, size_t begin, size_t end) {
        char *copy = strndup(text, end);

        if (copy)
                memset(copy, ' ', begin);
        return copy;
}

static int find_named(const struct source *source, struct step_text *reader, size_t n_word, uint32_t *ret_idx) {
        char names[256], meant[RECIPE_MEANT_MAX];
        struct nearest nearest;

        nearest_begin(&nearest, reader->at, n_word);
        for (uint32_t i = 0; i < source->schema.n_fields; i++) {
                if (field_name_is(&source->schema.fields[i], reader->at, n_word)) {
                        *ret_idx = i;
                        return 0;
                }
                nearest_offer(&nearest, source->schema.fields[i].name);
        }
        list_fields(&source->schema, false, names, sizeof(names));
        if (recipe_means(reader->at, meant))
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: \"%.*s\" is neither a step nor a field of the dataset, whose "
                               "fields are %s; the step is written as in %s",
                               step_text_column(reader, reader->at), word_shown(n_word), reader->at, names, meant);
        return why_set(
                reader->why, -EINVAL, "pipeline, column %zu: the dataset has no field \"%.*s\"%s; its fields are %s",
                step_text_column(reader, reader->at), word_shown(n_word), reader->at, nearest_hint(&nearest), names);
}

/* Reads "NAME =" of NAME=FIELD, if it is there. Returns the length of the word at which the reader is then. */
static size_t take_name(struct step_text *reader, size_t n_word, const char *names_end, struct adding *adding) {
        const char *after = reader->at + n_word + strspn(reader->at + n_word, BLANKS);

        adding->name = NULL;
        if (after >= names_end || *after != '=')
                return n_word;
        adding->name = reader->at;
        adding->n_name = n_word;
        adding->column = step_text_column(reader, reader->at);
        reader->at = after + 1;
        step_text_skip_blanks(reader);
        return reader->at < names_end ? name_length(reader->at) : 0;
}

/* Adds one view of the fields that the part names. */
static int add_part(struct program *program, const struct source *source, const char *text, const struct part *part,
                    uint32_t group, uint32_t view, struct why *why) {
        struct step_text reader = { .what = "pipeline", .text = text, .at = text + part->begin, .why = why };
        const char *names_end = text + (part->steps < part->end ? part->steps - 1 : part->end);
        _cleanup_(freep) char *steps = blank_but(text, part->steps, part->steps_end);
        struct adding adding = {
                .group = group, .views = part->views, .own = part->own, .view = view, .collation = &part->collation
        };

        if (!steps)
                return why_errno(why, -ENOMEM, "pipeline");
        if (strspn(steps, BLANKS) < strlen(steps))
                adding.steps = steps;
        if (part->steps < part->end && !adding.steps && !part->collation.type && part->views.n == 0 &&
            !part->own.function[0])
                return why_set(why, -EINVAL,
                               "pipeline, column %zu: expected steps after \":\"; without it the field is "
                               "handed out as it is stored",
                               part->steps + 1);
        for (;;) {
                uint32_t idx_field = 0;
                size_t n_word;
                int r;

                step_text_skip_blanks(&reader);
                n_word = reader.at < names_end ? name_length(reader.at) : 0;
                if (n_word > 0)
                        n_word = take_name(&reader, n_word, names_end, &adding);
                if (n_word == 0)
                        return step_text_refuse_here(&reader, "the name of a field");
                r = find_named(source, &reader, n_word, &idx_field);
                if (r == 0)
                        r = add_field(program, source, idx_field, &adding, why);
                if (r < 0)
                        return r;
                reader.at += n_word;
                step_text_skip_blanks(&reader);
                if (reader.at >= names_end)
                        return 0;
                if (*reader.at++ != ',') {
                        reader.at--;
                        return step_text_refuse_here(&reader, "\",\", \":\", \";\" or the end");
                }
        }
}

/* A part drops boxes: are there some, and is it clear which ones decide about the rows of other fields? */
static int check_dropping(const struct program *program, uint32_t begin, uint32_t n_boxes, struct why *why) {
        for (uint32_t i = 0; i < begin; i++)
                if (codec_drops_boxes(program->codecs[i]))
                        return why_set(why, -EINVAL,
                                       "pipeline: sanitize is in two parts; only one of them may have it");
        return n_boxes == 1 ? 0 : refuse_dropping(n_boxes, why);
}

/* A picture with such a name is a mask if another picture is named with it. */
static void find_masks(struct program *program, const struct source *source, uint32_t begin) {
        uint32_t n_masks = 0, ignored = 0, n_pictures = count_fields(program, begin, codec_is_picture, &ignored);

        for (unsigned pass = 0; pass < 2; pass++)
                for (uint32_t i = begin; i < program->n_fields; i++) {
                        struct codec *codec = program->codecs[i];

                        if (!codec_is_picture(codec) || !mask_is_name(source->schema.fields[codec_field(codec)].name))
                                continue;
                        if (pass == 0)
                                n_masks++;
                        else if (n_masks < n_pictures)
                                codec_set_mask(codec);
                }
}

/* Masks, boxes and points move with the only picture of their part, whose fields begin at `begin`; if the part drops
 * boxes, rows of its other arrays leave with them. */
static int lead_fields(struct program *program, const struct source *source, uint32_t begin, struct why *why) {
        uint32_t idx_picture = 0, idx_boxes = 0;
        uint32_t n_pictures = count_fields(program, begin, codec_is_picture, &idx_picture);
        uint32_t n_boxes = count_fields(program, begin, codec_is_boxes, &idx_boxes);
        bool drops = codec_drops_boxes(program->codecs[begin]);
        int r = drops ? check_dropping(program, begin, n_boxes, why) : 0;

        for (uint32_t i = begin; i < program->n_fields && r == 0; i++) {
                const struct schema_field *field = &source->schema.fields[codec_field(program->codecs[i])];
                const char *name = field->name;
                struct codec *codec = program->codecs[i];
                bool moves = moves_along(codec);

                if (moves && n_pictures != 1)
                        return why_set(
                                why, -EINVAL,
                                "pipeline: field %s moves with a picture, and its part names %s; name one picture "
                                "with it, as in \"image, %s: hflip(0.5)\", or name it without steps",
                                name, n_pictures == 0 ? "none" : "several", name);
                if (moves && codec_is_upright(program->codecs[idx_picture]))
                        return why_set(
                                why, -EINVAL,
                                "pipeline: field %s belongs to the picture as it is stored, and decode(exif=transpose) "
                                "would turn the picture alone: leave exif out, or name %s in a part of its own",
                                name, name);
                if (codec_is_of_boxes(codec) && !moves && n_boxes == 0 && array_mask_may_be(field))
                        return why_set(why, -EINVAL,
                                       "pipeline: field %s is a mask by its name, and an array of %s: begin the steps "
                                       "with decode(mask=D) and a dtype, uint8, uint16, int32 or int64",
                                       name, dlp_dtype_name(field->dtype));
                if (codec_is_of_boxes(codec) && !moves && n_boxes == 0)
                        return why_set(
                                why, -EINVAL,
                                "pipeline: field %s is an array, and the steps are for pictures; name it without "
                                "steps to get its elements, with to(DTYPE) to convert them, or with raw to get "
                                "its stored bytes",
                                name);
                if (moves)
                        codec_set_lead(codec, idx_picture);
                if ((codec_is_of_boxes(codec) || codec_is_planes(codec)) && drops)
                        codec_set_boxes(codec, idx_boxes);
        }
        return r;
}

/* Is it one field without steps that has the name of a step? */
static bool may_be_step(const struct program *program, const struct source *source) {
        const char *name = source->schema.fields[codec_field(program->codecs[0])].name;

        return program->n_fields == 1 && !codec_text(program->codecs[0])[0] && recipe_is_step(name, strlen(name));
}

/* Those of the part whose last field this is. Not each of its fields may have its collation. */
static int print_steps(const struct program *program, const uint32_t *parts, uint32_t idx_last, FILE *stream) {
        const char *steps = codec_text(program->codecs[idx_last]);
        const struct collation *collation = NULL;
        _cleanup_(freep) char *text = NULL;

        for (uint32_t i = 0; i <= idx_last; i++) {
                if (parts[i] == parts[idx_last] && program->collations[i].type)
                        collation = &program->collations[i];
                if (parts[i] == parts[idx_last] && !steps[0]) /* a label that is mixed with a picture has none */
                        steps = codec_text(program->codecs[i]);
        }
        text = print_ending(&program->owns[idx_last], collation, &program->views[idx_last]);
        if (!text)
                return -ENOMEM;
        fprintf(stream, "%s%s%s%s", steps[0] || text[0] ? ": " : "", steps, steps[0] && text[0] ? " " : "", text);
        return 0;
}

/* Is it the last field of its part that the text names? Later views follow it. */
static bool is_last_named(const struct program *program, const uint32_t *parts, uint32_t idx) {
        return idx + 1 == program->n_fields || parts[idx + 1] != parts[idx] || codec_view(program->codecs[idx + 1]) > 0;
}

/* Prints the fields of each part as "a, b: steps"; parts are separated by "; ". */
static int print_named(struct program *program, const struct source *source, const uint32_t *parts, struct why *why) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);
        int r = 0;

        if (!stream)
                return why_errno(why, -ENOMEM, "pipeline");
        for (uint32_t i = 0; i < program->n_fields && r == 0; i++) {
                if (codec_view(program->codecs[i]) > 0)
                        continue;
                fprintf(stream, "%s%s",
                        i == 0                     ? ""
                        : parts[i] != parts[i - 1] ? "; "
                                                   : ", ",
                        codec_name(program->codecs[i]));
                if (program->renamed[i] > 0)
                        fprintf(stream, "=%s", source->schema.fields[codec_field(program->codecs[i])].name);
                if (is_last_named(program, parts, i))
                        r = print_steps(program, parts, i, stream);
        }
        if (may_be_step(program, source))
                fprintf(stream, ";");
        if (fclose(stream) != 0 || r < 0) {
                free(text);
                return why_errno(why, -ENOMEM, "pipeline");
        }
        program->text = text;
        return 0;
}

/* Adds all views of a part, each as if it were the part alone. */
static int parse_part(struct program *program, const struct source *source, const char *text, const struct part *part,
                      uint32_t group, struct why *why) {
        uint32_t n_views = part->views.n > 0 ? part->views.n : 1;

        for (uint32_t view = 0; view < n_views; view++) {
                uint32_t begin = program->n_fields;
                int r = add_part(program, source, text, part, group, view, why);

                if (r < 0)
                        return r;
                if (part->own.function[0] && program->n_fields - begin > 1)
                        return why_set(why, -EINVAL,
                                       "pipeline, column %zu: python(%s) is for one field, and its part names %u: give "
                                       "each field a part of its own",
                                       part->own.column, part->own.function, program->n_fields - begin);
                collate_part(program, begin, &part->collation);
                find_masks(program, source, begin);
                r = lead_fields(program, source, begin, why);
                if (r == 0 && collation_mixes(&part->collation))
                        r = check_mixed(program, begin, view, &part->collation, why);
                if (r == 0)
                        r = check_mask_dtype(program, source, begin, why);
                if (r == 0 && view == 0)
                        r = check_views(program, begin, &part->views, why);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int parse_named(struct program *program, const struct source *source, const char *text, struct why *why) {
        uint32_t parts[DLP_TENSORS_MAX] = { 0 }, n_parts = 0, n_with_steps = 0;
        size_t end = strlen(text);

        for (size_t begin = 0; begin <= end;) {
                size_t part_end = find_outside(text, begin, end, ';');
                size_t colon = find_outside(text, begin, part_end, ':');
                struct part part = { begin, part_end, colon < part_end ? colon + 1 : part_end, .steps_end = part_end };
                uint32_t n_before = program->n_fields;
                int r = 0;

                if (colon < part_end)
                        r = views_take(text, part.steps, part_end, &part.views, &part.steps_end, why);
                if (r == 0 && colon < part_end)
                        r = take_ending(text, part.steps, &part.steps_end, &part.own, &part.collation, why);
                if (r == 0)
                        r = parse_part(program, source, text, &part, n_with_steps, why);
                if (r < 0)
                        return r;
                for (uint32_t i = n_before; i < program->n_fields; i++)
                        parts[i] = n_parts;
                n_parts++;
                /* A part without steps must not change what the others draw. */
                n_with_steps += part.collation.has_mlm || part.own.function[0] || collation_mixes(&part.collation) ||
                                part.steps + strspn(text + part.steps, BLANKS) < part.steps_end;
                begin = part_end + 1;
                if (part_end < end && begin + strspn(text + begin, BLANKS) == end) /* "a;" is the field a */
                        break;
        }
        return print_named(program, source, parts, why);
}

/* ---- with or without names ------------------------------------------------------------------------------------- */

/* Names are followed by ':' or separated by ';'. In a plain list of words, names are meant if the first word is one. A
 * field may have the name of a step, such as the "raw" of a tar's 000.raw: then what follows the word decides, and
 * neither reading is guessed. */
static int find_names(const char *text, const struct schema *schema, bool *ret_named, struct why *why) {
        size_t end = strlen(text), begin = strspn(text, BLANKS), n_word = name_length(text + begin);
        const char *word = text + begin, *next = word + n_word + strspn(word + n_word, BLANKS);

        *ret_named = true;
        if (find_outside(text, 0, end, ';') < end || find_outside(text, 0, end, ':') < end)
                return 0;
        *ret_named = is_field(schema, word, n_word) || *next == '=';
        if (!*ret_named || !recipe_is_step(word, n_word) || *next == ',')
                return 0;
        *ret_named = false; /* a field's name is followed by neither an argument nor a step */
        if (*next != '\0')
                return 0;
        return why_set(
                why, -EINVAL,
                "pipeline, column %zu: \"%.*s\" is a step and also a field of this dataset; write \"%.*s()\" for "
                "the step, and \"%.*s;\" for the field",
                begin + 1, (int)n_word, word, (int)n_word, word, (int)n_word, word);
}

int program_parse(const char *text, const struct source *source, struct tokenizers *tokenizers,
                  struct program **ret_program, struct why *why) {
        _cleanup_(program_freep) struct program *program = calloc(1, sizeof(*program));
        _cleanup_(freep) char *typed = strdup(text);
        bool is_named;
        int r;

        if (!program || !typed)
                return why_errno(why, -ENOMEM, "pipeline");
        typed_lists(typed);
        program->tokenizers = tokenizers;
        r = find_names(typed, &source->schema, &is_named, why);
        if (r == 0)
                r = is_named ? parse_named(program, source, typed, why) : parse_unnamed(program, source, typed, why);
        if (r == 0)
                r = settle_packing(program, why);
        if (r == 0)
                r = check_view_names(program, source, why);
        if (r == 0)
                r = check_added(program, why);
        if (r == 0 && strlen(program->text) >= DLP_PIPELINE_MAX)
                r = why_set(why, -EINVAL, "pipeline: with all defaults written out it is longer than %u bytes",
                            DLP_PIPELINE_MAX - 1);
        if (r < 0)
                return r;
        order_fields(program);
        *ret_program = TAKE_PTR(program);
        return 0;
}
