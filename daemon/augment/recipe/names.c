/* augment/recipe/names.c: the names of steps, and what people write in their place, who know what they want and not how
 * it is written here. Spellings that are simply taken are in proto/base/typed.h and in the kinds' other names. */
#include "daemon/augment/recipe/names.h"

#include "daemon/augment/recipe.h"
#include "proto/base/cleanup.h"
#include "proto/base/typed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define KIND(name) extern const struct step_type step_##name;
#include "kinds/picture_steps.h"
#undef KIND

static const struct kind *const PICTURE_STEPS[] = {
#define KIND(name) &step_##name.kind,
#include "kinds/picture_steps.h"
#undef KIND
        NULL,
};

static const struct kind_word TEXTS[] = {
        { "ToTensor", "to(float32) layout(nchw)" },
        { "PILToTensor", "layout(nchw)" },
        { NULL, NULL },
};

#define IN_TRAINER                                                                                                     \
        "is not a step here; do it with the batch in the trainer, where torchvision.transforms.v2 has it for the GPU"

/* Steps of a batch, not of a picture (collate/collation.h). */
#define OF_BATCH(name)                                                                                                 \
        "is written " name "(alpha=1, num_classes=N), as the last step of a part that names the label, too: "          \
        "\"image, label: ... " name "(num_classes=N)\""

static const struct kind_word ANSWERS[] = {
        { "Compose", "is not needed: write the steps one after the other, with blanks between them" },
        { "ToImage", "is not needed: pictures are decoded already; layout(nchw) puts the channels first" },
        { "ToPILImage", "is not needed: pictures stay arrays; leave it out" },
        { "Lambda", "would be code of yours: do that with the batch, in the trainer" },
        { "MixUp", OF_BATCH("mixup") },
        { "CutMix", OF_BATCH("cutmix") },
        { "LinearTransformation", IN_TRAINER },
        { NULL, NULL },
};

static const struct kind_word LEFT_OUT[] = {
        { "antialias", "a resize always averages the pixels that it leaves out, as Pillow does" },
        { "inplace", "there is no tensor yet that could be kept" },
        { "value_range", "floats are level / 255" },
        { NULL, NULL },
};

static const char *names_find(const struct kind_word *words, struct grammar_word name) {
        for (; words->word; words++)
                if (typed_is_class(name.at, name.n, words->word))
                        return words->text;
        return NULL;
}

/* The rest of a sentence about a value that was refused. */
static void names_hint(const struct kind *kind, uint32_t idx, const struct value *values, struct grammar_word value,
                       char *ret_text, size_t size) {
        enum argument_type before = idx == 1 ? kind->arguments[0].type : ARGUMENT_END;

        if ((before == ARGUMENT_SIZE || before == ARGUMENT_SIZE_SHORT) && value.n > 0 && value.n <= 5 &&
            strspn(value.at, "0123456789") >= value.n)
                snprintf(ret_text, size, "; height and width are written %s(%u:%.*s)", kind->name, values[0].height,
                         (int)value.n, value.at);
        else if (kind == &step_normalize.kind && typed_is(value.at, value.n, "imagenet"))
                snprintf(ret_text, size, "; ImageNet's are written %s", kind->example);
        else if (kind == &step_to.kind && typed_is(value.at, value.n, "float64"))
                snprintf(ret_text, size,
                         "; write to(float32), and make float64 of the batch, in the trainer (tensor.double())");
}

const struct kind_family picture_steps = {
        .noun = "step",
        .kinds = PICTURE_STEPS,
        .some = "random_resized_crop, resize, hflip and many more: dataloaderd-pipeline(7) lists them",
        .keys = FAMILY_NOT_THE_FIRST,
        .writes_parentheses = true,
        .hides_first_choice = true,
        .left_out = LEFT_OUT,
        .hint = names_hint,
};

const struct step_type *step_find(struct grammar_word name) {
        return (const struct step_type *)kind_find(&picture_steps, name);
}

const char *names_texts(struct grammar_word name) {
        return names_find(TEXTS, name);
}

/* The step whose value a word is: "to(float16)" for fp16, "layout(nchw)" for NCHW. False: it is none. */
static bool find_step_of_value(struct grammar_word word, char ret_text[RECIPE_MEANT_MAX]) {
        static const struct step_type *const STEPS[] = { &step_to, &step_layout };

        for (size_t i = 0; i < ARRAY_SIZE(STEPS); i++) {
                const struct argument *argument = STEPS[i]->kind.arguments;
                size_t k = typed_find(word.at, word.n, argument->choices, argument->n_choices);

                if (k < argument->n_choices) {
                        snprintf(ret_text, RECIPE_MEANT_MAX, "%s(%s)", STEPS[i]->kind.name, argument->choices[k]);
                        return true;
                }
        }
        return false;
}

bool recipe_means(struct grammar_word word, char ret_text[RECIPE_MEANT_MAX]) {
        bool has_dash = word.n > 0 && memchr(word.at, '-', word.n);
        const struct step_type *type;
        char copy[64];

        if (word.n == 0 || word.n >= sizeof(copy))
                return false;
        for (size_t i = 0; i < word.n; i++) /* who does not know where "_" is right and where "-" */
                copy[i] = word.at[i] == '-' ? '_' : word.at[i];
        type = step_find((struct grammar_word){ copy, word.n });
        if (!type)
                return find_step_of_value((struct grammar_word){ copy, word.n }, ret_text);
        snprintf(ret_text, RECIPE_MEANT_MAX, "%s", type->kind.example);
        return has_dash;
}

int names_refuse(const struct grammar *grammar, struct grammar_word name, struct why *why) {
        const char *answer = names_find(ANSWERS, name);
        char meant[RECIPE_MEANT_MAX];

        if (answer)
                return grammar_refuse(grammar, name.at, why, "%.*s %s", grammar_shown(name), name.at, answer);
        if (recipe_means(name, meant))
                return grammar_refuse(grammar, name.at, why,
                                      "\"%.*s\" is not the name of a step; it is written as in %s", grammar_shown(name),
                                      name.at, meant);
        return kind_refuse(&picture_steps, grammar, name, why);
}

bool recipe_is_step(struct grammar_word word) {
        return kind_named(&picture_steps, word) != NULL;
}

uint32_t recipe_word_views(struct grammar_word word) {
        const struct step_type *type = step_find(word);

        return type ? type->n_views : 0;
}

bool recipe_has(struct grammar_word name) {
        return name.n > 0 && (step_find(name) || names_texts(name));
}
