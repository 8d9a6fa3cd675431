#include "proto/base/shown/columns.h"

#include <stdint.h>
#include <string.h>

#include "proto/base/text.h"
#include "proto/base/utf8.h"

void columns_bytes(struct columns *columns, const char *bytes, size_t n, unsigned n_columns) {
        if (columns->n + n >= columns->size)
                return;
        memcpy(columns->bytes + columns->n, bytes, n);
        columns->n += n;
        columns->n_columns += n_columns;
        columns->bytes[columns->n] = '\0';
}

static bool joins_or_selects(uint32_t point) {
        return point == 0x200c || point == 0x200d || (point >= 0x180b && point <= 0x180f) ||
               (point >= 0xfe00 && point <= 0xfe0f) || (point >= 0xe0100 && point <= 0xe01ef);
}

/* Of what is printable all but joiners and selectors of variants, which not every terminal draws without a column. */
static bool is_shown(const char *text, uint32_t point, bool utf8) {
        return text_printable_length(text) > 0 && (point < 0x80 || utf8) && !joins_or_selects(point);
}

/* The character at `text` and its columns; what is not shown is one '?'. Returns its bytes. */
static size_t character(const char *text, bool utf8, bool *ret_is_shown, unsigned *ret_columns) {
        uint32_t point = 0;
        size_t n = utf8_decode(text, SIZE_MAX, &point);

        *ret_is_shown = n > 0 && is_shown(text, point, utf8);
        *ret_columns = *ret_is_shown ? utf8_columns(point) : 1;
        return n > 0 ? n : 1;
}

unsigned columns_of(const char *text, bool utf8) {
        unsigned n = 0;

        while (*text) {
                unsigned width;
                bool shown;

                text += character(text, utf8, &shown, &width);
                n += width;
        }
        return n;
}

void columns_text(struct columns *columns, const char *text, unsigned from, unsigned to) {
        unsigned at = 0;

        while (*text && at <= to) {
                unsigned width;
                bool shown;
                size_t n = character(text, columns->utf8, &shown, &width);

                if (at >= from && at + width <= to)
                        columns_bytes(columns, shown ? text : "?", shown ? n : 1, width);
                at += width;
                text += n;
        }
}

void columns_begin(struct columns *columns, const char *text, unsigned n_columns) {
        unsigned n_mark = columns->utf8 ? 1 : 2;

        if (n_columns <= n_mark || columns_of(text, columns->utf8) <= n_columns) {
                columns_text(columns, text, 0, n_columns);
                return;
        }
        columns_text(columns, text, 0, n_columns - n_mark);
        columns_bytes(columns, columns->utf8 ? "…" : "..", columns->utf8 ? 3 : 2, n_mark);
}

void columns_name(struct columns *columns, const char *name, unsigned n_columns) {
        const char *gap = columns->utf8 ? "…" : "..";
        unsigned n = columns_of(name, columns->utf8), n_gap = columns->utf8 ? 1 : 2, n_head;

        if (n <= n_columns) {
                columns_text(columns, name, 0, n);
                return;
        }
        if (n_columns <= n_gap) {
                columns_text(columns, name, 0, n_columns);
                return;
        }
        n_head = (n_columns - n_gap) / 3;
        columns_text(columns, name, 0, n_head);
        columns_bytes(columns, gap, strlen(gap), n_gap);
        columns_text(columns, name, n - (n_columns - n_gap - n_head), n);
}

void columns_bar(struct columns *columns, double share, unsigned n_columns) {
        static const char *const EIGHTHS[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
        double bounded = share >= 1 ? 1 : share > 0 ? share : 0;
        unsigned eighths = (unsigned)(bounded * 8 * n_columns), full = eighths / 8, at = 0;

        for (; at < full; at++)
                columns_bytes(columns, columns->utf8 ? "█" : "=", columns->utf8 ? 3 : 1, 1);
        if (columns->utf8 && eighths % 8 && at < n_columns) {
                columns_bytes(columns, EIGHTHS[eighths % 8], 3, 1);
                at++;
        }
        for (; at < n_columns; at++)
                columns_bytes(columns, columns->utf8 ? "░" : "-", columns->utf8 ? 3 : 1, 1);
}
