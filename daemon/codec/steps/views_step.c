#include "daemon/codec/steps/views_step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/recipe.h"
#include "proto/base/step_text.h"

#define NAME "views"

static int views_step_read_count(struct step_text *reader, uint32_t *ret_n) {
        unsigned long n;
        char *after;

        if (*reader->at < '0' || *reader->at > '9')
                return step_text_refuse_here(reader, "how many views, as in " NAME "(2)");
        errno = 0;
        n = strtoul(reader->at, &after, 10);
        if (errno != 0 || n < 2 || n > VIEWS_MAX)
                return why_set(
                        reader->why, -EINVAL, "pipeline, column %zu: " NAME "(%.*s): 2 to %u views are allowed%s",
                        step_text_column(reader, reader->at), word_shown((size_t)(after - reader->at)), reader->at,
                        VIEWS_MAX,
                        errno == 0 && n < 2 ? "; leave the step out, and there is one picture of each sample" : "");
        *ret_n = (uint32_t)n;
        reader->at = after;
        return 0;
}

static int views_step_expect(struct step_text *reader, char wanted, const char *expected) {
        if (*reader->at != wanted)
                return step_text_refuse_here(reader, expected);
        reader->at++;
        step_text_skip_blanks(reader);
        return 0;
}

/* The name of the argument may be left out, as that of every first one. */
static void skip_name(struct step_text *reader) {
        const char *after = reader->at + 1;

        if (*reader->at != 'n')
                return;
        after += strspn(after, " \t\r\n");
        if (*after != '=')
                return;
        reader->at = after + 1;
        step_text_skip_blanks(reader);
}

static int views_step_read_arguments(struct step_text *reader, uint32_t *ret_n) {
        int r;

        step_text_skip_blanks(reader);
        r = views_step_expect(reader, '(', "\"(\" and how many views, as in " NAME "(2)");
        if (r == 0) {
                skip_name(reader);
                r = views_step_read_count(reader, ret_n);
        }
        if (r < 0)
                return r;
        step_text_skip_blanks(reader);
        return views_step_expect(reader, ')', "\")\"");
}

static int refuse_more(const struct step_text *reader, size_t at, size_t end) {
        struct step_word word;

        if (!step_text_next_word(reader->text, at, end, &word))
                return step_text_refuse_here(reader, "the end: the step before is the last one of its part");
        return why_set(reader->why, -EINVAL,
                       "pipeline, column %zu: \"%.*s\" after " NAME ", which is the last step of its part: write " NAME
                       " after it",
                       word.begin + 1, word_shown(word.n), reader->text + word.begin);
}

/* The next word that may be a step, also of a class with its module before it: "v2.FiveCrop". */
static bool next_word(const char *text, size_t at, size_t end, struct step_word *ret_word) {
        while (at < end && text[at] == '.')
                at++;
        return step_text_next_word(text, at, end, ret_word);
}

/* Steps that make several pictures of each sample, such as five_crop. */
static int take_crops(const struct step_text *reader, size_t begin, size_t end, struct views *views) {
        struct step_word word = { .end = begin };

        while (next_word(reader->text, word.end, end, &word)) {
                uint32_t n = recipe_word_views(reader->text + word.begin, word.n);

                if (n == 0)
                        continue;
                if (views->n > 0 && views->n != n)
                        return why_set(reader->why, -EINVAL,
                                       "pipeline, column %zu: " NAME "(%u), and %.*s makes %u pictures of each sample, "
                                       "which are its views: leave " NAME " out",
                                       views->column, views->n, word_shown(word.n), reader->text + word.begin, n);
                views->n = n;
                views->column = views->column > 0 ? views->column : word.begin + 1;
                views->is_crops = true;
                return 0;
        }
        return 0;
}

int views_take(const char *text, size_t begin, size_t end, struct views *ret_views, size_t *ret_steps_end,
               struct why *why) {
        struct step_text reader = { .what = "pipeline", .text = text, .why = why };
        struct step_word word = { .end = begin };
        struct views views = { 0 };
        int r;

        while (next_word(text, word.end, end, &word))
                if (word_is(text + word.begin, word.n, NAME)) {
                        views.column = word.begin + 1;
                        reader.at = text + word.begin + word.n;
                        r = views_step_read_arguments(&reader, &views.n);
                        if (r == 0 && reader.at < text + end)
                                r = refuse_more(&reader, (size_t)(reader.at - text), end);
                        if (r < 0)
                                return r;
                        end = word.begin;
                        break;
                }
        r = take_crops(&reader, begin, end, &views);
        if (r < 0)
                return r;
        *ret_views = views;
        *ret_steps_end = end;
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
