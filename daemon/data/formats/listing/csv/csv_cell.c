#include "daemon/data/formats/listing/csv/csv_cell.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/base/json/decimal.h"
#include "daemon/base/json/json_value.h"
#include "proto/base/text.h"

static bool csv_cell_is_one_of(const uint8_t *text, size_t n, const char *const *words) {
        for (; *words; words++)
                if (strlen(*words) == n && strncasecmp((const char *)text, *words, n) == 0)
                        return true;
        return false;
}

/* Digits with a point among them or before them, and an exponent: as Python's float() reads them. */
static bool csv_cell_is_float(const uint8_t *text, size_t n) {
        size_t at = n > 0 && (text[0] == '+' || text[0] == '-'), n_digits = 0, begin;
        bool has_point = false;

        for (; at < n && ((text[at] >= '0' && text[at] <= '9') || (text[at] == '.' && !has_point)); at++) {
                has_point |= text[at] == '.';
                n_digits += text[at] != '.';
        }
        if (n_digits == 0)
                return false;
        if (at == n)
                return has_point;
        if (text[at] != 'e' && text[at] != 'E')
                return false;
        at++;
        at += at < n && (text[at] == '+' || text[at] == '-');
        for (begin = at; at < n && text[at] >= '0' && text[at] <= '9';)
                at++;
        return at == n && at > begin;
}

/* Up to 18 digits, and perhaps a minus; none of them is a zero before others. */
static bool is_short_integer(const uint8_t *text, size_t n, int64_t *ret_integer) {
        bool is_negative = n > 0 && text[0] == '-';
        int64_t integer = 0;

        if (n == is_negative || n > 18u + is_negative || (text[is_negative] == '0' && n > 1u + is_negative))
                return false;
        for (size_t i = is_negative; i < n; i++) {
                if (text[i] < '0' || text[i] > '9')
                        return false;
                integer = integer * 10 + (text[i] - '0');
        }
        *ret_integer = is_negative ? -integer : integer;
        return true;
}

/* Can a number, true, false or a line break before a number begin so? Most texts cannot. */
static bool may_be_more(uint8_t first) {
        return (first >= '0' && first <= '9') || memchr("+-.tTfFnNiI\r\n", first, 13);
}

void csv_cell_judge(const uint8_t *text, size_t n, struct table_cell *cell) {
        static const char *const FLOATS[] = { "nan", "inf", "-inf", "infinity", "-infinity", NULL };
        static const char *const TRUE[] = { "true", NULL }, *const FALSE[] = { "false", NULL };
        char number[JSON_NUMBER_MAX + 1];

        cell->kind = n == 0 ? CELL_ABSENT : CELL_TEXT;
        while (n > 0 && text_is_blank(text[0])) {
                text++;
                n--;
        }
        while (n > 0 && text_is_blank(text[n - 1]))
                n--;
        if (n == 0 || n > JSON_NUMBER_MAX || !may_be_more(text[0]))
                return;
        if (is_short_integer(text, n, &cell->integer)) {
                cell->kind = cell->integer < 0 ? CELL_NEGATIVE : CELL_INTEGER;
        } else if (memchr(text, '.', n) && decimal_read(text, n, &cell->number)) {
                cell->kind = CELL_FLOAT;
        } else if (cell_read_integer(text, n, cell, NULL) == 0) {
                return;
        } else if (csv_cell_is_float(text, n) || csv_cell_is_one_of(text, n, FLOATS)) {
                memcpy(number, text, n);
                number[n] = '\0';
                cell->number = strtod(number, NULL);
                cell->kind = CELL_FLOAT;
        } else if (csv_cell_is_one_of(text, n, TRUE) || csv_cell_is_one_of(text, n, FALSE)) {
                cell->integer = n == strlen(TRUE[0]);
                cell->kind = CELL_BOOLEAN;
        }
}
