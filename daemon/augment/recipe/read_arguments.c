/* augment/recipe/read_arguments.c: the arguments of one step: which they are, and which are given. */
#include "daemon/augment/recipe/read_arguments.h"

#include "daemon/augment/habits.h"
#include "daemon/augment/torchvision.h"
#include "proto/base/nearest.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

unsigned count_arguments(const struct step_type *type) {
        unsigned n = 0;

        while (type->arguments[n].kind != ARGUMENT_END)
                n++;
        return n;
}

static bool read_arguments_is_argument(const struct argument *argument, const char *word, size_t n) {
        return word_is(word, n, argument->name) || (argument->other_name && word_is(word, n, argument->other_name));
}

static int read_arguments_refuse_key(const struct step_text *reader, const struct step_type *type, size_t n_word) {
        const char *reason = torchvision_left_out(reader->at, n_word);
        char names[160] = "";
        struct nearest nearest;

        for (unsigned i = 0; i < count_arguments(type); i++) {
                size_t n = strlen(names);

                snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "", type->arguments[i].name);
        }
        if (reason)
                return why_set(
                        reader->why, -EINVAL, "pipeline, column %zu: %s has no argument \"%.*s\"; leave it out: %s",
                        step_text_column(reader, reader->at), type->name, word_shown(n_word), reader->at, reason);
        return why_set(reader->why, -EINVAL, "pipeline, column %zu: %s has no argument \"%.*s\"%s; it has %s",
                       step_text_column(reader, reader->at), type->name, word_shown(n_word), reader->at,
                       nearest_in(&nearest, reader->at, n_word, names), names);
}

/* Reads the value of one argument, after its key if it has one. */
static int read_arguments_read_value(struct step_text *reader, const struct step_type *type, unsigned idx,
                                     struct step *step, struct recipe *recipe, unsigned *given) {
        struct why detail = {};
        char habit[HABIT_MAX];
        int r;

        if (*given & 1u << idx)
                return why_set(reader->why, -EINVAL, "pipeline, column %zu: %s of %s is given twice",
                               step_text_column(reader, reader->at), type->arguments[idx].name, type->name);
        if (type->arguments[idx].kind == ARGUMENT_STEPS) {
                *given |= 1u << idx;
                return read_inside(reader, type, recipe);
        }
        r = argument_parse(&type->arguments[idx], reader->at, &step->values[idx], &detail);
        if (r < 0) {
                habit_value(type, idx, &step->values[0], reader->at, habit);
                return why_set(reader->why, r, "pipeline, column %zu: %s%s", step_text_column(reader, reader->at),
                               detail.text, habit);
        }
        reader->at += r;
        *given |= 1u << idx;
        return 0;
}

/* Finds the next argument: the named one, or the next in sequence. Leaves the reader at its value. */
static int read_arguments_read_key(struct step_text *reader, const struct step_type *type, unsigned *next, bool *named,
                                   unsigned *ret_idx) {
        unsigned n_arguments = count_arguments(type);
        size_t n_word = word_length(reader->at);
        const char *equals = reader->at + n_word + strspn(reader->at + n_word, " \t");

        if (n_word > 0 && *equals == '=') {
                for (unsigned i = 0; i < n_arguments; i++)
                        if (read_arguments_is_argument(&type->arguments[i], reader->at, n_word)) {
                                reader->at = equals + 1;
                                step_text_skip_blanks(reader);
                                *named = true;
                                *ret_idx = i;
                                return 0;
                        }
                return read_arguments_refuse_key(reader, type, n_word);
        }
        if (*named && *reader->at && strchr("+-.0123456789", *reader->at))
                return step_text_refuse_here(
                        reader, "key=value, as after another key=value; a list is written mean=[0.5, 0.4, 0.4], or "
                                "mean=0.5:0.4:0.4");
        if (*named)
                return step_text_refuse_here(reader, "key=value, as after another key=value");
        if (*next >= n_arguments)
                return step_text_refuse_here(reader, "\")\": the step has no more arguments");
        *ret_idx = (*next)++;
        return 0;
}

int read_arguments(struct step_text *reader, const struct step_type *type, struct step *step, struct recipe *recipe,
                   unsigned *given) {
        unsigned next = 0, idx = 0;
        bool named = false;
        int r;

        r = *reader->at == '(' ? step_text_enter(reader) : 0;
        while (r > 0) {
                r = read_arguments_read_key(reader, type, &next, &named, &idx);
                if (r == 0)
                        r = read_arguments_read_value(reader, type, idx, step, recipe, given);
                if (r == 0)
                        r = step_text_after_argument(reader);
        }
        return r;
}

int fill_defaults(const struct step_text *reader, const char *word, struct step *step, unsigned given) {
        const struct step_type *type = step->type;

        for (unsigned i = 0; i < count_arguments(type); i++) {
                int r;

                if (given & 1u << i || type->arguments[i].is_optional)
                        continue;
                if (!type->arguments[i].by_default)
                        return why_set(reader->why, -EINVAL, "pipeline, column %zu: %s needs its %s, as in %s",
                                       step_text_column(reader, word), type->name, type->arguments[i].name,
                                       type->example);
                r = argument_parse(&type->arguments[i], type->arguments[i].by_default, &step->values[i], NULL);
                assert(r > 0);
        }
        return 0;
}
