#include "daemon/collate/collation.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collate/collation_type.h"

#define COLLATION_STORE_BYTES 8192u /* a text has 4095 bytes */

#define KIND(name) extern const struct collation_type collation_##name;
#include "kinds/collations.h"
#undef KIND

static const struct kind *const COLLATIONS[] = {
#define KIND(name) &collation_##name.kind,
#include "kinds/collations.h"
#undef KIND
        NULL,
};

const struct kind_family collation_kinds = { .noun = "collation",
                                             .kinds = COLLATIONS,
                                             .numbers = FAMILY_WHOLE_LISTS,
                                             .keys = FAMILY_ALL_KEYS,
                                             .hides_first_choice = true };

/* ---- finding it ------------------------------------------------------------------------------------------------ */

/* With a first argument that has no name, or one of the step's own, the step for pictures is meant. */
static bool collation_is_step(const struct collation_type *type, const struct grammar_step *written) {
        if (!type->of_step || written->n_arguments == 0)
                return false;
        if (written->arguments[0].key.n == 0)
                return true;
        for (size_t i = 0; type->of_step[i]; i++)
                if (grammar_is(written->arguments[0].key, type->of_step[i]))
                        return true;
        return false;
}

/* NULL: it is a step of another family. */
static const struct collation_type *collation_type_of(const struct grammar_step *written) {
        const struct kind *kind = kind_named(&collation_kinds, written->name);
        const struct collation_type *type = (const struct collation_type *)kind;

        return !kind || collation_is_step(type, written) ? NULL : type;
}

/* Adds it to what is there of the text. */
static int collation_read_step(const struct values_reader *reader, const struct grammar_step *written,
                               struct collation *collation) {
        const struct collation_type *type = collation_type_of(written);
        size_t n = strlen(collation->text);
        struct value values[COLLATION_ARGUMENTS_MAX];
        struct why reason;
        int r = values_read(reader, &type->kind, written, values);

        if (r < 0)
                return r;
        if (type->settle && type->settle(values, collation, &reason) < 0)
                return values_refuse(reader, &type->kind, written, &reason);
        n += (size_t)snprintf(collation->text + n, sizeof(collation->text) - n, "%s", n > 0 ? " " : "");
        n += values_print(&collation_kinds, &type->kind, values, NULL, NULL, collation->text + n,
                          sizeof(collation->text) - n);
        assert(n < sizeof(collation->text));
        return 0;
}

int collation_read(struct grammar *grammar, struct grammar_steps steps, struct collation *ret_collation,
                   uint32_t *ret_n_before, struct why *why) {
        _Alignas(8) uint8_t memory[COLLATION_STORE_BYTES];
        struct value_store store = { memory, sizeof(memory) };
        struct values_reader reader = { &collation_kinds, grammar, &store, why };
        struct collation collation = { 0 };
        uint32_t i = 0;
        int r = 0;

        *ret_collation = collation;
        *ret_n_before = steps.n;
        while (i < steps.n && !collation_type_of(&steps.at[i]))
                i++;
        if (i == steps.n)
                return 0;
        collation.type = collation_type_of(&steps.at[i]);
        *ret_n_before = i;
        if (collation.type == &collation_mlm) {
                collation.has_mlm = true;
                if (i + 1 == steps.n || collation_type_of(&steps.at[i + 1]) != &collation_pad)
                        return grammar_refuse(grammar, steps.at[i].name.at, why,
                                              "mlm makes labels, which are padded with their tokens: the next step is "
                                              "pad, and the last");
                r = collation_read_step(&reader, &steps.at[i++], &collation);
                collation.type = &collation_pad;
        }
        if (r == 0)
                r = collation_read_step(&reader, &steps.at[i], &collation);
        if (r < 0)
                return r;
        if (i + 1 < steps.n && steps.at[i + 1].name.n == 0)
                return grammar_expect(grammar, steps.at[i + 1].name.at,
                                      "the end: the step before says how samples become a batch", why);
        if (i + 1 < steps.n)
                return grammar_refuse(grammar, steps.at[i + 1].name.at, why,
                                      "\"%.*s\" after %s, which says how samples become a batch and is the last step",
                                      grammar_shown(steps.at[i + 1].name), steps.at[i + 1].name.at,
                                      collation.type->kind.name);
        collation.column = grammar_column(grammar, steps.at[i].name.at);
        *ret_collation = collation;
        return 0;
}

/* ---- what it says ---------------------------------------------------------------------------------------------- */

char *collation_text(const struct collation *collation) {
        return strdup(collation->text);
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
            (!collation->has_mlm || collation_mlm.apply(collation, form, &detail) == 0))
                return 0;
        return why_set(why, -EINVAL, "pipeline, column %zu: %s: field %s %s", collation->column,
                       collation->type->kind.name, form->name, detail.text);
}

bool collation_is_stack(const struct collation *collation) {
        return !collation->type || collation->type == &collation_stack;
}

bool collation_is_pack(const struct collation *collation) {
        return collation->type == &collation_pack;
}

const char *collation_name(const struct collation *collation) {
        return collation->type->kind.name;
}

bool collation_mixes(const struct collation *collation) {
        return collation->type && collation->type->mixes;
}

bool collation_packs_alike(const struct collation *one, const struct collation *other) {
        const struct packing_terms *a = &one->pack, *b = &other->pack;

        return a->size == b->size && a->strategy == b->strategy && a->on_long == b->on_long && a->rows == b->rows &&
               a->bins == b->bins && a->max_samples == b->max_samples && a->shuffle == b->shuffle;
}
