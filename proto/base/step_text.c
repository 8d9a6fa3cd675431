#include "proto/base/step_text.h"

#include <errno.h>
#include <string.h>

#define BLANKS " \t\r\n"

size_t step_text_column(const struct step_text *steps, const char *at) {
        return (size_t)(at - steps->text) + 1;
}

void step_text_skip_blanks(struct step_text *steps) {
        steps->at += strspn(steps->at, BLANKS);
}

int step_text_after_argument(struct step_text *steps) {
        step_text_skip_blanks(steps);
        if (*steps->at == ')') {
                steps->at++;
                return 0;
        }
        if (*steps->at != ',')
                return step_text_refuse_here(steps, "\",\" or \")\"");
        steps->at++;
        step_text_skip_blanks(steps);
        return *steps->at == ')' ? step_text_refuse_here(steps, "another argument after \",\"") : 1;
}

size_t word_length(const char *text) {
        return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

bool word_is(const char *word, size_t n, const char *name) {
        return strlen(name) == n && memcmp(word, name, n) == 0;
}

/* After the parentheses that open at `at`. Quotes may hold anything. */
static size_t skip_parentheses(const char *text, size_t at, size_t end) {
        bool is_quoted = false;
        unsigned depth = 0;

        for (; at < end; at++) {
                is_quoted ^= text[at] == '"';
                if (is_quoted) {
                        at += text[at] == '\\' && at + 1 < end;
                        continue;
                }
                depth += text[at] == '(';
                depth -= text[at] == ')';
                if (depth == 0)
                        return at + 1;
        }
        return end;
}

bool step_text_next_word(const char *text, size_t at, size_t end, struct step_word *ret_word) {
        while (at < end && strchr(BLANKS, text[at]))
                at++;
        ret_word->begin = at;
        ret_word->n = at < end ? word_length(text + at) : 0;
        if (ret_word->n > end - at)
                ret_word->n = end - at;
        at += ret_word->n;
        ret_word->end = at < end && text[at] == '(' ? skip_parentheses(text, at, end) : at;
        return ret_word->n > 0;
}

int word_shown(size_t n) {
        return n > 40 ? 40 : (int)n;
}

int step_text_refuse_here(const struct step_text *steps, const char *expected) {
        size_t at = step_text_column(steps, steps->at);

        if (*steps->at == '\0')
                return why_set(steps->why, -EINVAL, "%s, column %zu: the text ends; expected %s", steps->what, at,
                               expected);
        if (*steps->at < ' ' || *steps->at > '~')
                return why_set(steps->why, -EINVAL, "%s, column %zu: byte 0x%02x; expected %s", steps->what, at,
                               (unsigned char)*steps->at, expected);
        return why_set(steps->why, -EINVAL, "%s, column %zu: \"%c\"; expected %s", steps->what, at, *steps->at,
                       expected);
}
