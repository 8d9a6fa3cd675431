/* top/line.h: a line of the screen: text with styles, cut to its width, whatever the names in it are. */
#pragma once

#include "proto/base/shown/columns.h"

#define LINE_BYTES_MAX   4096u
#define LINE_COLUMNS_MAX 512u /* of a wider terminal the rest stays empty */
#define LINE_SPANS_MAX   96u

enum style {
        STYLE_PLAIN,
        STYLE_DIM,
        STYLE_STRONG,
        STYLE_LABEL, /* what a number is */
        STYLE_TITLE, /* of the table's columns */
        STYLE_SORTED,
        STYLE_KEY, /* what a key does; its name is STYLE_PLAIN */
        STYLE_GOOD,
        STYLE_FAIR,
        STYLE_BAD,
        N_STYLES,
};

/* From a byte and column on, to the next span. */
struct span {
        size_t from;
        unsigned column;
        enum style style;
};

struct line {
        char bytes[LINE_BYTES_MAX];
        struct columns text; /* in bytes */
        struct span spans[LINE_SPANS_MAX];
        size_t n_spans;
        unsigned n_columns; /* that it may take */
        bool is_chosen;     /* the whole line is marked */
        enum style fill;    /* of blanks, and of what is right of the text */
};

void line_begin(struct line *line, unsigned n_columns, bool utf8);

/* Adds a text of our own; what does not fit is cut. */
void line_put(struct line *line, enum style style, const char *text);
void line_format(struct line *line, enum style style, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Adds any text, cut at its end, with a mark. */
void line_sentence(struct line *line, enum style style, const char *text);

/* Adds any text in exactly n_columns, aligned; a longer one loses its middle. */
void line_cell(struct line *line, enum style style, const char *text, unsigned n_columns, bool right);

/* Adds blanks up to this column. */
void line_to(struct line *line, unsigned column);

/* Adds a bar between brackets, with a text over its right end: [||||||   61 %]. */
void line_meter(struct line *line, double share, const char *text, unsigned n_columns);

/* Adds a bar without brackets. */
void line_bar(struct line *line, enum style style, double share, unsigned n_columns);

/* How many columns are left. */
unsigned line_left(const struct line *line);
