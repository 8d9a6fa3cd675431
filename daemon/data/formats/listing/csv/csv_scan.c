#include "daemon/data/formats/listing/csv/csv_scan.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "daemon/base/little_endian.h"
#include "proto/base/text.h"

char csv_delimiter_of(const char *name) {
        size_t n = strlen(name);

        return n > 4 && strcasecmp(name + n - 4, ".tsv") == 0 ? '\t' : ',';
}

static bool is_delimiter(uint8_t byte, char delimiter) {
        return delimiter == CSV_BLANKS ? text_is_blank(byte) : byte == (uint8_t)delimiter;
}

static uint64_t count_lines(const uint8_t *at, const uint8_t *end) {
        uint64_t n = 0;

        for (; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
                n++;
        return n;
}

/* The end of a quoted cell at `at`: the byte after its last quote. SIZE_MAX: it is not closed. */
static size_t end_of_quoted(const uint8_t *bytes, size_t at, size_t n_bytes, uint64_t *n_lines) {
        for (at++; at < n_bytes; at++) {
                const uint8_t *quote = memchr(bytes + at, '"', n_bytes - at);

                *n_lines += count_lines(bytes + at, quote ? quote : bytes + n_bytes);
                if (!quote)
                        break;
                at = (size_t)(quote - bytes) + 1;
                if (at == n_bytes || bytes[at] != '"')
                        return at;
        }
        return SIZE_MAX;
}

/* The lowest bit that is set is in the first byte that equals `byte` (eight bytes, the first of them the lowest). */
static uint64_t find_byte(uint64_t eight, uint8_t byte) {
        uint64_t ones = 0x0101010101010101u, zero = eight ^ ones * byte;

        return (zero - ones) & ~zero & ones * 0x80;
}

/* Most cells are a few bytes long, for which calls of memchr() would take longer. */
static size_t end_of_plain(const uint8_t *bytes, size_t at, size_t n_bytes, char delimiter) {
        bool is_blanks = delimiter == CSV_BLANKS;
        uint8_t one = is_blanks ? ' ' : (uint8_t)delimiter, other = is_blanks ? '\t' : '\n';

        for (; n_bytes - at >= 8; at += 8) {
                uint64_t eight = le64(bytes + at);
                uint64_t found = find_byte(eight, one) | find_byte(eight, other) | find_byte(eight, '\n') |
                                 find_byte(eight, '\r');

                if (found != 0)
                        return at + (size_t)__builtin_ctzll(found) / 8;
        }
        while (at < n_bytes && !is_delimiter(bytes[at], delimiter) && bytes[at] != '\n' && bytes[at] != '\r')
                at++;
        return at;
}

int csv_find_row(const uint8_t *bytes, size_t n_bytes, bool is_last, char delimiter, size_t *ret_n_row,
                 size_t *ret_n_with_end, uint64_t *ret_n_lines, struct why *why) {
        uint64_t n_lines = 0;
        size_t at = 0;

        for (;;) {
                bool is_quoted = at < n_bytes && bytes[at] == '"';

                at = is_quoted ? end_of_quoted(bytes, at, n_bytes, &n_lines)
                               : end_of_plain(bytes, at, n_bytes, delimiter);
                if (at == SIZE_MAX && is_last)
                        return why_set(why, -EBADMSG, "a cell begins with a quote and has no second one");
                /* A quote or "\r" at the end may be one of two bytes. */
                if (!is_last && (at == SIZE_MAX || at == n_bytes || (bytes[at] == '\r' && at + 1 == n_bytes)))
                        return CSV_MORE;
                if (at == n_bytes || bytes[at] == '\n' || bytes[at] == '\r')
                        break;
                if (!is_delimiter(bytes[at], delimiter))
                        return why_set(why, -EBADMSG,
                                       "\"%c\" follows the quote that ends a cell; a quote in a quoted cell is written "
                                       "twice",
                                       bytes[at]);
                at++;
        }
        *ret_n_row = at;
        while (delimiter == CSV_BLANKS && *ret_n_row > 0 && text_is_blank(bytes[*ret_n_row - 1]))
                (*ret_n_row)--;
        if (at < n_bytes)
                at += bytes[at] == '\r' && at + 1 < n_bytes && bytes[at + 1] == '\n' ? 2 : 1;
        *ret_n_with_end = at;
        *ret_n_lines = n_lines + 1;
        return 0;
}

bool csv_next_cell(const uint8_t *row, size_t n_row, char delimiter, size_t *at, struct csv_cell *ret_cell) {
        size_t begin = *at, end;
        uint64_t n_lines = 0;
        bool is_quoted;

        while (delimiter == CSV_BLANKS && begin < n_row && text_is_blank(row[begin]))
                begin++;
        if (begin > n_row) /* the cell before was the last one */
                return false;
        is_quoted = begin < n_row && row[begin] == '"';
        end = is_quoted ? end_of_quoted(row, begin, n_row, &n_lines) : end_of_plain(row, begin, n_row, delimiter);
        *ret_cell = (struct csv_cell){ .begin = begin, .n_bytes = end - begin, .is_quoted = is_quoted };
        *at = end + 1;
        return true;
}

size_t csv_text(const uint8_t *cell, size_t n_bytes, uint8_t *into) {
        size_t n = 0;

        if (n_bytes < 2 || cell[0] != '"') {
                if (into && n_bytes > 0)
                        memcpy(into, cell, n_bytes);
                return n_bytes;
        }
        for (size_t i = 1; i + 1 < n_bytes; i++) {
                if (cell[i] == '"' && cell[i + 1] == '"' && i + 2 < n_bytes)
                        i++;
                if (into)
                        into[n] = cell[i];
                n++;
        }
        return n;
}

/* ---- in the middle of a file ----------------------------------------------------------------------------------- */

/* Does a cell begin after this byte, if it is outside of quotes? */
static bool is_before_cell(uint8_t byte, char delimiter) {
        return is_delimiter(byte, delimiter) || byte == '\n' || byte == '\r';
}

/* The state of byte `to`, from that of byte `at`, by looking at quotes only. */
static uint8_t state_after(uint8_t before, const uint8_t *bytes, size_t at, size_t to, char delimiter, uint8_t state) {
        while (at < to) {
                const uint8_t *quote = memchr(bytes + at, '"', to - at);

                if (!quote)
                        break;
                at = (size_t)(quote - bytes) + 1;
                if (state == CSV_PLAIN) {
                        if (is_before_cell(at > 1 ? quote[-1] : before, delimiter)) /* else it is a byte like others */
                                state = CSV_QUOTED;
                } else if (at == to) {
                        return CSV_QUOTE;
                } else if (bytes[at] == '"') {
                        at++;
                } else {
                        state = CSV_PLAIN;
                }
        }
        return state;
}

void csv_states(uint8_t before, const uint8_t *bytes, size_t n_bytes, char delimiter, uint8_t ret_after[N_CSV_STATES]) {
        bool is_second = n_bytes > 0 && bytes[0] == '"';

        ret_after[CSV_PLAIN] = state_after(before, bytes, 0, n_bytes, delimiter, CSV_PLAIN);
        ret_after[CSV_QUOTED] = state_after(before, bytes, 0, n_bytes, delimiter, CSV_QUOTED);
        if (n_bytes == 0)
                ret_after[CSV_QUOTE] = CSV_QUOTE;
        else
                ret_after[CSV_QUOTE] = is_second ? state_after(before, bytes, 1, n_bytes, delimiter, CSV_QUOTED)
                                                 : ret_after[CSV_PLAIN];
}

size_t csv_find_begin(uint8_t before, const uint8_t *bytes, size_t n_bytes, char delimiter, uint8_t state) {
        for (size_t at = 0; at < n_bytes; at++) {
                if (state == CSV_QUOTE)
                        state = bytes[at] == '"' ? CSV_QUOTED : CSV_PLAIN;
                else if (state == CSV_QUOTED)
                        state = bytes[at] == '"' ? CSV_QUOTE : CSV_QUOTED;
                else if (before == '\n' || (before == '\r' && bytes[at] != '\n'))
                        return at;
                else if (bytes[at] == '"' && is_before_cell(before, delimiter))
                        state = CSV_QUOTED;
                before = bytes[at];
        }
        return n_bytes;
}
