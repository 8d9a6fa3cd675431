/* augment/recipe/names.c: the names of steps, and what people write in their place. */
#include "daemon/augment/recipe/names.h"

#include "daemon/augment/habits.h"
#include "daemon/augment/torchvision.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/typed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct step_type *const TYPES[] = {
#define ROW(name) &step_##name,
        STEPS(ROW)
#undef ROW
};

/* For messages: "random_resized_crop, ..., decode, raw". */
static void list_steps(char *text, size_t size) {
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_SIZE(TYPES); i++)
                n += (size_t)snprintf(text + n, size - n, "%s, ", TYPES[i]->name);
        snprintf(text + n, size - n, "decode, raw");
}

const struct step_type *step_find(const char *word, size_t n) {
        for (size_t i = 0; i < ARRAY_SIZE(TYPES); i++)
                if (word_is(word, n, TYPES[i]->name))
                        return TYPES[i];
        return NULL;
}

const struct step_type *step_find_typed(const char *word, size_t n) {
        const struct step_type *type = step_find(word, n);
        const char *name = type ? NULL : torchvision_step(word, n);

        if (name)
                return step_find(name, strlen(name));
        for (size_t i = 0; i < ARRAY_SIZE(TYPES) && !type; i++)
                if (typed_is_class(word, n, TYPES[i]->name))
                        type = TYPES[i];
        return type;
}

/* Of a word as people write it, who do not know where "_" is right and where "-": random-resized-crop. */
static size_t dashed_length(const char *word) {
        size_t n = word_length(word);

        while (n > 0 && word[n] == '-' && word_length(word + n + 1) > 0)
                n += 1 + word_length(word + n + 1);
        return n;
}

bool recipe_means(const char *word, char ret_text[RECIPE_MEANT_MAX]) {
        size_t n = dashed_length(word);
        const struct step_type *type;
        char copy[64];

        if (n == 0 || n >= sizeof(copy))
                return false;
        for (size_t i = 0; i < n; i++)
                copy[i] = word[i];
        for (size_t i = 0; i < n; i++)
                if (copy[i] == '-')
                        copy[i] = '_';
        type = step_find_typed(copy, n);
        if (!type)
                return habit_step(copy, n, ret_text);
        snprintf(ret_text, RECIPE_MEANT_MAX, "%s", type->example);
        return n > word_length(word);
}

/* All of them are more than an error's text holds. */
#define SOME_STEPS "random_resized_crop, resize, hflip and many more: dataloaderd-pipeline(7) lists them"

int step_refuse(const struct step_text *reader, const char *word, size_t n_word) {
        char names[32 * ARRAY_SIZE(TYPES) + 32];
        const char *answer = torchvision_answer(word, n_word);
        char meant[RECIPE_MEANT_MAX];
        struct nearest nearest;

        if (answer)
                return why_set(reader->why, -EINVAL, "pipeline, column %zu: %.*s %s", step_text_column(reader, word),
                               word_shown(n_word), word, answer);
        if (recipe_means(word, meant))
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: \"%.*s\" is not the name of a step; it is "
                               "written as in %s",
                               step_text_column(reader, word), word_shown(dashed_length(word)), word, meant);
        list_steps(names, sizeof(names));
        if (n_word > 0)
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: unknown step \"%.*s\"%s; the steps are " SOME_STEPS,
                               step_text_column(reader, word), word_shown(n_word), word,
                               nearest_in(&nearest, word, n_word, names));
        return step_text_refuse_here(reader, "the name of a step: " SOME_STEPS);
}

bool is_mode(const char *word, size_t n) {
        return word_is(word, n, "raw") || word_is(word, n, "decode");
}

bool recipe_is_step(const char *word, size_t n) {
        return step_find(word, n) || is_mode(word, n);
}

uint32_t recipe_word_views(const char *word, size_t n) {
        const struct step_type *type = step_find_typed(word, n);

        return type ? type->n_views : 0;
}

const char *skip_module(const char *text) {
        static const char *const MODULES[] = { "torchvision.", "transforms.", "v2.", "T." };

        for (size_t i = 0; i < ARRAY_SIZE(MODULES); i++)
                if (strncmp(text, MODULES[i], strlen(MODULES[i])) == 0)
                        text += strlen(MODULES[i]);
        return text;
}

bool recipe_begins(const char *text) {
        const char *word = skip_module(text + strspn(text, " \t\r\n"));
        size_t n = word_length(word);

        return step_find_typed(word, n) || torchvision_steps(word, n) || is_mode(word, n);
}
