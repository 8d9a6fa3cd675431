#include "daemon/codec/steps/views_step.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/augment/recipe.h"
#include "daemon/codec/steps/field_steps.h"
#include "proto/text/step_values.h"

const struct kind field_step_views = {
        .name = "views",
        .doc = "Delivers `n` pictures of each sample, each with random draws of its own, as contrastive training (SimCLR, "
               "MoCo) wants them.",
        .example = "views(2)",
        .needs = "pictures",
        .arguments = ARGUMENTS({ ARGUMENT_WHOLE, "n", .minimum = 2, .maximum = VIEWS_MAX }),
};

static void hint(const struct kind *kind, uint32_t idx, const struct value *values, struct grammar_word value,
                 char *ret_text, size_t size) {
        if (grammar_is(value, "0") || grammar_is(value, "1"))
                snprintf(ret_text, size, "; leave the step out, and there is one picture of each sample");
}

static const struct kind_family VIEWS = { .noun = "step", .hint = hint };

/* Steps that make several pictures of each sample, such as five_crop. */
static int find_crops(const struct grammar *grammar, struct grammar_steps steps, struct views *views, struct why *why) {
        for (uint32_t i = 0; i < steps.n; i++) {
                struct grammar_word name = steps.at[i].name;
                uint32_t n = recipe_word_views(name);

                if (n == 0)
                        continue;
                if (views->n > 0 && views->n != n)
                        return why_set(why, -EINVAL,
                                       "pipeline, column %zu: views(%u), and %.*s makes %u pictures of each sample, "
                                       "which are its views: leave views out",
                                       views->column, views->n, grammar_shown(name), name.at, n);
                views->n = n;
                views->column = views->column > 0 ? views->column : grammar_column(grammar, name.at);
                views->is_crops = true;
                return 0;
        }
        return 0;
}

int views_read(struct grammar *grammar, struct grammar_steps steps, struct views *ret_views, uint32_t *ret_n_before,
               struct why *why) {
        const struct values_reader reader = { &VIEWS, grammar, NULL, why };
        uint32_t i = grammar_find(steps, field_step_views.name);
        struct views views = { 0 };
        struct value n;
        int r = 0;

        if (i < steps.n) {
                const struct grammar_step *after = i + 1 < steps.n ? &steps.at[i + 1] : NULL;

                views.column = grammar_column(grammar, steps.at[i].name.at);
                r = values_read(&reader, &field_step_views, &steps.at[i], &n);
                if (r == 0 && after && after->name.n == 0)
                        r = grammar_expect(grammar, after->name.at,
                                           "the end: the step before is the last one of its part", why);
                else if (r == 0 && after)
                        r = grammar_refuse(
                                grammar, after->name.at, why,
                                "\"%.*s\" after views, which is the last step of its part: write views after "
                                "it",
                                grammar_shown(after->name), after->name.at);
                if (r < 0)
                        return r;
                views.n = (uint32_t)n.whole;
                steps.n = i;
        }
        r = find_crops(grammar, steps, &views, why);
        if (r < 0)
                return r;
        *ret_views = views;
        *ret_n_before = steps.n;
        return 0;
}

int views_name(const char *field, uint32_t view, char ret_name[DLP_TENSOR_NAME_MAX]) {
        char name[2 * DLP_TENSOR_NAME_MAX];

        if (view == 0)
                snprintf(name, sizeof(name), "%s", field);
        else
                snprintf(name, sizeof(name), "%s_%u", field, view + 1);
        if (strlen(name) >= DLP_TENSOR_NAME_MAX)
                return -ENAMETOOLONG;
        strcpy(ret_name, name);
        return 0;
}
