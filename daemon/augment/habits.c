#include "daemon/augment/habits.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/typed.h"

static const char *const TYPES[] = { "uint8", "float16", "bfloat16", "float32" };
static const char *const LAYOUTS[] = { "nhwc", "nchw" };

bool habit_step(const char *word, size_t n, char ret_text[HABIT_MAX]) {
        size_t type = typed_find(word, n, TYPES, ARRAY_SIZE(TYPES));
        size_t layout = typed_find(word, n, LAYOUTS, ARRAY_SIZE(LAYOUTS));

        if (n == 0 || (type == ARRAY_SIZE(TYPES) && layout == ARRAY_SIZE(LAYOUTS)))
                return false;
        if (type < ARRAY_SIZE(TYPES))
                snprintf(ret_text, HABIT_MAX, "to(%s)", TYPES[type]);
        else
                snprintf(ret_text, HABIT_MAX, "layout(%s)", LAYOUTS[layout]);
        return true;
}

void habit_value(const struct step_type *type, unsigned idx, const struct value *first, const char *text,
                 char ret_text[HABIT_MAX]) {
        size_t n = strcspn(text, ",) \t\r\n"), n_digits = strspn(text, "0123456789");
        enum argument_kind before = idx == 1 ? type->arguments[0].kind : ARGUMENT_END;

        ret_text[0] = '\0';
        if ((before == ARGUMENT_SIZE || before == ARGUMENT_SIZE_SHORT) && n > 0 && n_digits == n && n <= 5)
                snprintf(ret_text, HABIT_MAX, "; height and width are written %s(%u:%.*s)", type->name, first->height,
                         (int)n, text);
        else if (type == &step_normalize && typed_is(text, n, "imagenet"))
                snprintf(ret_text, HABIT_MAX, "; ImageNet's are written %s", type->example);
        else if (type == &step_to && typed_is(text, n, "float64"))
                snprintf(ret_text, HABIT_MAX,
                         "; write to(float32), and make float64 of the batch, in the trainer (tensor.double())");
}
