#include "client/dlctl/top/top_words.h"

#include <stdio.h>
#include <string.h>

#define WORD_MAX 1024u /* bytes with NUL; a longer one is cut into several */

/* The next word, with the blanks after it passed over. */
static const char *top_words_take_word(const char *text, char word[WORD_MAX]) {
        size_t n = strcspn(text, " ");

        n = n < WORD_MAX - 1 ? n : WORD_MAX - 1;
        snprintf(word, WORD_MAX, "%.*s", (int)n, text);
        return text + n + strspn(text + n, " ");
}

void words_emit(const struct view *view, const char *label, unsigned indent, enum style style, const char *text,
                emit_fn *emit, void *arg) {
        char word[WORD_MAX];
        struct line line;

        if (indent >= view->n_columns / 2)
                indent = 0;
        line_begin(&line, view->n_columns, view->utf8);
        if (indent > 0) {
                line_put(&line, STYLE_LABEL, label);
                line_to(&line, indent);
        }
        while (*text) {
                unsigned n;

                text = top_words_take_word(text, word);
                n = columns_of(word, view->utf8);
                if (line.text.n_columns > indent && n + 1 > line_left(&line)) {
                        emit(arg, &line);
                        line_begin(&line, view->n_columns, view->utf8);
                        line_to(&line, indent);
                }
                if (line.text.n_columns > indent)
                        line_put(&line, style, " ");
                line_sentence(&line, style, word);
        }
        emit(arg, &line);
}
