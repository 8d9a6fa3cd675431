#include "proto/base/step_text.h"

#include <errno.h>
#include <string.h>

size_t step_text_column(const struct step_text *steps, const char *at) {
        return (size_t)(at - steps->text) + 1;
}

void step_text_skip_blanks(struct step_text *steps) {
        steps->at += strspn(steps->at, " \t\r\n");
}

size_t word_length(const char *text) {
        return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

bool word_is(const char *word, size_t n, const char *name) {
        return strlen(name) == n && memcmp(word, name, n) == 0;
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
