#include "daemon/collate/collation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collate/collation_type.h"
#include "proto/base/cleanup.h"

#define BLANKS " \t\r\n"

/* One row for each collation. */
static const struct collation_type *const TYPES[] = {
        &COLLATION_STACK, &COLLATION_RAGGED, &COLLATION_PAD, &COLLATION_PACK,
        &COLLATION_MIXUP, &COLLATION_CUTMIX, &COLLATION_MIX,
};

static const struct collation_type *collation_find_type(const char *word, size_t n) {
        for (size_t i = 0; i < ARRAY_SIZE(TYPES); i++)
                if (word_is(word, n, TYPES[i]->name))
                        return TYPES[i];
        return NULL;
}

/* ---- finding it ------------------------------------------------------------------------------------------------ */

/* With a first argument that has no name, or one of the step's own, it is the step. */
static bool collation_is_step(const struct collation_type *type, const char *arguments) {
        size_t n, blanks;

        if (*arguments != '(')
                return false;
        arguments += 1 + strspn(arguments + 1, BLANKS);
        n = word_length(arguments);
        blanks = strspn(arguments + n, " \t");
        if (*arguments == ')')
                return false;
        if (arguments[n + blanks] != '=')
                return true;
        for (size_t i = 0; type->of_step[i]; i++)
                if (word_is(arguments, n, type->of_step[i]))
                        return true;
        return false;
}

static const struct collation_type *collation_type_of(const char *text, const struct step_word *word) {
        const struct collation_type *type = collation_find_type(text + word->begin, word->n);

        return type && type->of_step && collation_is_step(type, text + word->begin + word->n) ? NULL : type;
}

static int collation_read_word(const char *text, const struct step_word *word, const struct collation_type *type,
                               struct collation *collation, struct why *why) {
        struct step_text reader = { .what = "pipeline", .text = text, .at = text + word->begin + word->n, .why = why };
        struct why detail;
        int r;

        if (type->init)
                type->init(collation);
        r = collation_read_arguments(&reader, type, collation);
        if (r == 0 && type->check && type->check(collation, &detail) < 0)
                r = why_set(why, -EINVAL, "pipeline, column %zu: %s: %s", word->begin + 1, type->name, detail.text);
        return r;
}

static bool is_mlm(const char *text, const struct step_word *word) {
        return word_is(text + word->begin, word->n, COLLATION_MLM.name);
}

static int refuse_mlm(const char *text, const struct step_word *word, struct why *why) {
        (void)text;
        return why_set(why, -EINVAL,
                       "pipeline, column %zu: mlm makes labels, which are padded with their tokens: the next step is "
                       "pad, and the last",
                       word->begin + 1);
}

int collation_take(const char *text, size_t begin, size_t end, struct collation *ret_collation, size_t *ret_steps_end,
                   struct why *why) {
        struct step_word word = { .end = begin }, found = { 0 }, before = { 0 };
        struct collation collation = { 0 };
        const struct collation_type *type = NULL;
        int r = 0;

        *ret_collation = (struct collation){ 0 };
        *ret_steps_end = end;
        while (step_text_next_word(text, word.end, end, &word)) {
                if (type)
                        return why_set(why, -EINVAL,
                                       "pipeline, column %zu: \"%.*s\" after %s, which says how samples become a batch "
                                       "and is the last step",
                                       word.begin + 1, word_shown(word.n), text + word.begin, type->name);
                type = collation_type_of(text, &word);
                before = found;
                found = word;
                if (is_mlm(text, &before) && type != &COLLATION_PAD)
                        return refuse_mlm(text, &before, why);
        }
        if (is_mlm(text, &found))
                return refuse_mlm(text, &found, why);
        if (!type)
                return 0;
        if (word.begin < end) { /* no step: that is said of what follows the collation */
                struct step_text reader = { .what = "pipeline", .text = text, .at = text + word.begin, .why = why };

                return step_text_refuse_here(&reader, "the end: the step before says how samples become a batch");
        }
        collation = (struct collation){ .type = type, .column = found.begin + 1, .has_mlm = is_mlm(text, &before) };
        if (collation.has_mlm)
                r = collation_read_word(text, &before, &COLLATION_MLM, &collation, why);
        if (r == 0)
                r = collation_read_word(text, &found, type, &collation, why);
        if (r < 0)
                return r;
        *ret_steps_end = collation.has_mlm ? before.begin : found.begin;
        *ret_collation = collation;
        return 0;
}

/* ---- what it says ---------------------------------------------------------------------------------------------- */

char *collation_text(const struct collation *collation) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        if (collation->has_mlm) {
                collation_print(&COLLATION_MLM, collation, stream);
                fputs(" ", stream);
        }
        collation_print(collation->type, collation, stream);
        if (fclose(stream) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

const char *collation_added(const struct collation *collation, unsigned idx) {
        return collation->type && collation->type->added ? collation->type->added(collation, idx) : NULL;
}

unsigned collation_n_added(const struct collation *collation) {
        unsigned n = 0;

        while (collation_added(collation, n))
                n++;
        return n;
}

int collation_apply(const struct collation *collation, struct field_form *form, struct why *why) {
        struct why detail;

        if (!collation->type)
                return 0;
        if (collation->type->apply(collation, form, &detail) == 0 &&
            (!collation->has_mlm || COLLATION_MLM.apply(collation, form, &detail) == 0))
                return 0;
        return why_set(why, -EINVAL, "pipeline, column %zu: %s: field %s %s", collation->column, collation->type->name,
                       form->name, detail.text);
}

bool collation_is_stack(const struct collation *collation) {
        return !collation->type || collation->type == &COLLATION_STACK;
}

bool collation_is_pack(const struct collation *collation) {
        return collation->type == &COLLATION_PACK;
}

const char *collation_name(const struct collation *collation) {
        return collation->type->name;
}

bool collation_mixes(const struct collation *collation) {
        return collation->type && collation->type->mixes;
}

bool collation_packs_alike(const struct collation *one, const struct collation *other) {
        const struct packing_terms *a = &one->pack, *b = &other->pack;

        return a->size == b->size && a->strategy == b->strategy && a->on_long == b->on_long && a->rows == b->rows &&
               a->bins == b->bins && a->max_samples == b->max_samples && a->shuffle == b->shuffle;
}
