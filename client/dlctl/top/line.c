#include "client/dlctl/top/line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void line_begin(struct line *line, unsigned n_columns, bool utf8) {
        line->bytes[0] = '\0';
        line->text = (struct columns){ .bytes = line->bytes, .size = LINE_BYTES_MAX, .utf8 = utf8 };
        line->n_spans = 0;
        line->n_columns = n_columns < LINE_COLUMNS_MAX ? n_columns : LINE_COLUMNS_MAX;
        line->is_chosen = false;
        line->fill = STYLE_PLAIN;
}

unsigned line_left(const struct line *line) {
        return line->text.n_columns < line->n_columns ? line->n_columns - line->text.n_columns : 0;
}

/* What is added from now on has this style. */
static void restyle(struct line *line, enum style style) {
        if (line->n_spans > 0 && line->spans[line->n_spans - 1].style == style)
                return;
        if (line->n_spans < LINE_SPANS_MAX)
                line->spans[line->n_spans++] = (struct span){ line->text.n, line->text.n_columns, style };
}

void line_put(struct line *line, enum style style, const char *text) {
        restyle(line, style);
        columns_text(&line->text, text, 0, line_left(line));
}

void line_format(struct line *line, enum style style, const char *format, ...) {
        char text[512];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        line_put(line, style, text);
}

void line_sentence(struct line *line, enum style style, const char *text) {
        restyle(line, style);
        columns_begin(&line->text, text, line_left(line));
}

void line_to(struct line *line, unsigned column) {
        static const char BLANKS[] = "                                ";

        while (line->text.n_columns < column && line_left(line) > 0) {
                unsigned n = column - line->text.n_columns;

                n = n < line_left(line) ? n : line_left(line);
                n = n < sizeof(BLANKS) - 1 ? n : (unsigned)sizeof(BLANKS) - 1;
                restyle(line, line->fill);
                columns_bytes(&line->text, BLANKS, n, n);
        }
}

void line_cell(struct line *line, enum style style, const char *text, unsigned n_columns, bool right) {
        unsigned begin = line->text.n_columns, n = columns_of(text, line->text.utf8);

        if (n_columns > line_left(line))
                n_columns = line_left(line);
        if (right && n < n_columns)
                line_to(line, begin + n_columns - n);
        restyle(line, style);
        columns_name(&line->text, text, n_columns < n ? n_columns : n);
        line_to(line, begin + n_columns);
}

void line_bar(struct line *line, enum style style, double share, unsigned n_columns) {
        restyle(line, style);
        columns_bar(&line->text, share, n_columns < line_left(line) ? n_columns : line_left(line));
}

void line_meter(struct line *line, double share, const char *text, unsigned n_columns) {
        unsigned n = n_columns < line_left(line) ? n_columns : line_left(line), n_text = (unsigned)strlen(text), full;
        enum style style = share >= 0.95 ? STYLE_FAIR : STYLE_GOOD;

        if (n < n_text + 4)
                return;
        n -= 2;
        full = share >= 1 ? n : share > 0 ? (unsigned)(share * n + 0.5) : 0;
        line_put(line, STYLE_STRONG, "[");
        for (unsigned i = 0; i + n_text < n; i++)
                line_put(line, i < full ? style : STYLE_PLAIN, i < full ? "|" : " ");
        for (unsigned i = 0; i < n_text; i++)
                line_put(line, n - n_text + i < full ? style : STYLE_DIM, (char[]){ text[i], '\0' });
        line_put(line, STYLE_STRONG, "]");
}
