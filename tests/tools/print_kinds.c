/* print_kinds: the kinds of all families (proto/text/kinds.h) as JSON, for whoever writes a page, a dictionary or a
 * test of all of them: a list of families, each with its name and the list of its kinds.
 *
 *      [{ "family": "pictures", "kinds": [{ "name": NAME, "classes": [NAME, ...], "doc": TEXT, "example": TEXT,
 *         "like": TEXT, "arguments": [{ "name": NAME, "type": "number", "default": TEXT, "is_optional": false,
 *         "allowed": "a number from 0 to 256", "minimum": 0, "maximum": 256 }, ...] }, ...] }, ...]
 *
 * What a kind does not say is not there; "left_out" is what an argument is that the text need not have. The last family
 * is "formats", of datasets: each has its name, its doc, its example and the "keys" of the configuration that it takes.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/step.h"
#include "daemon/codec/steps/field_steps.h"
#include "daemon/collate/collation_type.h"
#include "daemon/data/format.h"
#include "daemon/sound/sound_step.h"
#include "daemon/store/record/record_steps.h"
#include "proto/base/cleanup.h"
#include "proto/order/steps/sampler_step.h"
#include "proto/text/step_values.h"

static const struct kind *const FIELD_STEPS[] = {
#define KIND(name) &field_step_##name,
#include "kinds/field_steps.h"
#undef KIND
        NULL,
};
static const struct kind_family field_steps = { .kinds = FIELD_STEPS };

static const struct {
        const char *name;
        const struct kind_family *family;
} FAMILIES[] = {
        { "pictures", &picture_steps }, { "sounds", &sound_kinds },    { "collations", &collation_kinds },
        { "fields", &field_steps },     { "samplers", &dlp_samplers }, { "preparation", &prepare_kinds },
};

static const char *const TYPES[] = {
        [ARGUMENT_WHOLE] = "whole",       [ARGUMENT_NUMBER] = "number",   [ARGUMENT_FLAG] = "flag",
        [ARGUMENT_CHOICE] = "choice",     [ARGUMENT_SIZE] = "size",       [ARGUMENT_SIZE_SHORT] = "size_short",
        [ARGUMENT_RANGE] = "range",       [ARGUMENT_SPAN] = "span",       [ARGUMENT_AROUND] = "around",
        [ARGUMENT_LIST] = "list",         [ARGUMENT_NUMBERS] = "numbers", [ARGUMENT_WEIGHTS] = "weights",
        [ARGUMENT_NAME] = "name",         [ARGUMENT_COLUMN] = "column",   [ARGUMENT_LENGTHS] = "lengths",
        [ARGUMENT_FORM] = "form",         [ARGUMENT_FORMS] = "forms",     [ARGUMENT_STEPS] = "steps",
        [ARGUMENT_ANYTHING] = "anything",
};

static const char *const ROLES[] = {
        [DLP_CHOOSER] = "chooser", [DLP_ARRANGER] = "arranger", [DLP_GROUPER] = "grouper"
};

static void add_text(cJSON *object, const char *key, const char *text) {
        if (text)
                cJSON_AddStringToObject(object, key, text);
}

static void add_words(cJSON *object, const char *key, const char *words) {
        cJSON *list = words ? cJSON_AddArrayToObject(object, key) : NULL;
        char copy[256];

        snprintf(copy, sizeof(copy), "%s", words ? words : "");
        for (char *rest = NULL, *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
                cJSON_AddItemToArray(list, cJSON_CreateString(word));
}

static cJSON *argument_json(const struct kind_family *family, const struct kind *kind,
                            const struct argument *argument) {
        cJSON *object = cJSON_CreateObject();
        char allowed[512];

        values_describe(kind, argument, allowed, sizeof(allowed));
        add_text(object, "name", argument->name);
        add_text(object, "type", TYPES[argument->type]);
        add_text(object, "default", argument->by_default);
        cJSON_AddBoolToObject(object, "is_optional", argument->is_optional);
        add_text(object, "allowed", allowed);
        add_text(object, "form", argument->form);
        add_text(object, "word", argument->word);
        add_text(object, "other_name", argument->other_name);
        add_text(object, "attribute", argument->attribute);
        cJSON_AddNumberToObject(object, "minimum", argument->minimum);
        cJSON_AddNumberToObject(object, "maximum", argument->maximum);
        if (argument->n_choices > 0 && argument->is_optional && family->hides_first_choice)
                add_text(object, "left_out", argument->choices[0]);
        if (argument->n_choices > 0)
                cJSON_AddItemToObject(object, "choices",
                                      cJSON_CreateStringArray(argument->choices, (int)argument->n_choices));
        return object;
}

static cJSON *kind_json(const struct kind_family *family, const struct kind *kind) {
        cJSON *object = cJSON_CreateObject(), *arguments;

        add_text(object, "name", kind->name);
        add_words(object, "classes", kind->other_names);
        add_text(object, "doc", kind->doc);
        add_text(object, "example", kind->example);
        add_text(object, "like", kind->like);
        add_text(object, "needs", kind->needs);
        add_text(object, "gives", kind->gives);
        if (family == &collation_kinds) {
                const struct collation_type *type = (const struct collation_type *)kind;

                cJSON_AddBoolToObject(object, "mixes", type->mixes);
                cJSON_AddBoolToObject(object, "is_of_batch", type->mixes || type->is_of_batch);
        }
        if (family == &dlp_samplers)
                add_text(object, "role", ROLES[((const struct dlp_step_type *)kind)->role]);
        arguments = cJSON_AddArrayToObject(object, "arguments");
        for (uint32_t i = 0; i < kind_n_arguments(kind); i++)
                cJSON_AddItemToArray(arguments, argument_json(family, kind, &kind->arguments[i]));
        return object;
}

static cJSON *begin_family(cJSON *families, const char *name) {
        cJSON *object = cJSON_CreateObject();

        cJSON_AddStringToObject(object, "family", name);
        cJSON_AddItemToArray(families, object);
        return cJSON_AddArrayToObject(object, "kinds");
}

int main(void) {
        cJSON *families = cJSON_CreateArray(), *kinds;
        char *text;

        for (size_t i = 0; i < ARRAY_SIZE(FAMILIES); i++) {
                kinds = begin_family(families, FAMILIES[i].name);
                for (const struct kind *const *kind = FAMILIES[i].family->kinds; *kind; kind++)
                        cJSON_AddItemToArray(kinds, kind_json(FAMILIES[i].family, *kind));
        }
        kinds = begin_family(families, "formats");
        for (size_t i = 0; format_at(i); i++) {
                cJSON *object = cJSON_CreateObject(), *keys;

                add_text(object, "name", format_at(i)->name);
                add_text(object, "doc", format_at(i)->doc);
                add_text(object, "example", format_at(i)->example);
                keys = cJSON_AddArrayToObject(object, "keys");
                for (const struct setting *key = format_at(i)->options; key && key->name; key++)
                        cJSON_AddItemToArray(keys, cJSON_CreateString(key->name));
                cJSON_AddItemToArray(kinds, object);
        }
        text = cJSON_Print(families);
        if (!text)
                return EXIT_FAILURE;
        puts(text);
        free(text);
        cJSON_Delete(families);
        return EXIT_SUCCESS;
}
