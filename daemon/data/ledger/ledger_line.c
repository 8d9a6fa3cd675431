#include "daemon/data/ledger/ledger_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COLUMNS  7u
#define YEAR_MAX 9999

static const char COLUMN_NAMES[] = "# sample\ttimes\tfirst\tlast\tpath\terror\tfield\n";

/* ---- writing ------------------------------------------------------------------------------------------------- */

size_t ledger_header_print(char line[LEDGER_LINE_MAX], const char *digest) {
        return (size_t)snprintf(line, LEDGER_LINE_MAX, "# dataloaderd damaged samples 1\n# digest %.64s\n%s", digest,
                                COLUMN_NAMES);
}

static size_t ledger_line_print_time(char *at, int64_t unix_seconds) {
        time_t seconds = (time_t)unix_seconds;
        struct tm utc;

        if (!gmtime_r(&seconds, &utc))
                gmtime_r(&(time_t){ 0 }, &utc);
        return strftime(at, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* `least`: the first character that is written as it is. */
static size_t print_escaped(char *at, const char *text, unsigned char least) {
        static const char DIGITS[] = "0123456789abcdef";
        char *begin = at;

        for (; *text; text++) {
                unsigned char byte = (unsigned char)*text;

                if (byte >= least && byte != 0x7f && byte != '\\') {
                        *at++ = (char)byte;
                        continue;
                }
                *at++ = '\\';
                if (byte == '\t' || byte == '\n' || byte == '\\') {
                        *at++ = byte == '\t' ? 't' : byte == '\n' ? 'n' : '\\';
                        continue;
                }
                *at++ = 'x';
                *at++ = DIGITS[byte >> 4];
                *at++ = DIGITS[byte & 15];
        }
        return (size_t)(at - begin);
}

size_t ledger_line_print(char line[LEDGER_LINE_MAX], const struct ledger_entry *entry, const char *path) {
        size_t n = (size_t)snprintf(line, LEDGER_LINE_MAX, "%" PRIu64 "\t%" PRIu64 "\t", entry->sample, entry->n_met);

        n += ledger_line_print_time(line + n, entry->first_unix);
        line[n++] = '\t';
        n += ledger_line_print_time(line + n, entry->last_unix);
        line[n++] = '\t';
        n += print_escaped(line + n, path, ' ');
        line[n++] = '\t';
        n += print_escaped(line + n, entry->error.text, ' ');
        line[n++] = '\t';
        n += print_escaped(line + n, entry->field, ' ' + 1);
        line[n++] = '\n';
        return n;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

bool ledger_header_matches(const char *text, const char *digest) {
        char header[LEDGER_LINE_MAX];
        size_t n = ledger_header_print(header, digest);

        return strncmp(text, header, n - strlen(COLUMN_NAMES)) == 0; /* an earlier version had fewer columns */
}

static int ledger_line_parse_number(const char *text, uint64_t *ret_number) {
        char *end;

        if (*text < '0' || *text > '9')
                return -EBADMSG;
        errno = 0;
        *ret_number = strtoull(text, &end, 10);
        return errno == 0 && *end == '\0' ? 0 : -EBADMSG;
}

static bool ledger_line_is_within(int value, int least, int most) {
        return value >= least && value <= most;
}

/* Accepts only what ledger_line_print_time() writes. */
static int parse_time(const char *text, int64_t *ret_unix) {
        struct tm utc = { 0 };
        int n = 0;

        if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &utc.tm_year, &utc.tm_mon, &utc.tm_mday, &utc.tm_hour,
                   &utc.tm_min, &utc.tm_sec, &n) != 6 ||
            n == 0 || text[n] != '\0' || !ledger_line_is_within(utc.tm_year, 1970, YEAR_MAX) ||
            !ledger_line_is_within(utc.tm_mon, 1, 12) || !ledger_line_is_within(utc.tm_mday, 1, 31) ||
            !ledger_line_is_within(utc.tm_hour, 0, 23) || !ledger_line_is_within(utc.tm_min, 0, 59) ||
            !ledger_line_is_within(utc.tm_sec, 0, 59))
                return -EBADMSG;
        utc.tm_year -= 1900;
        utc.tm_mon--;
        *ret_unix = timegm(&utc);
        return 0;
}

static char unescape_one(const char **text) {
        unsigned value;

        switch (**text) {
        case 't':
                return '\t';
        case 'n':
                return '\n';
        case 'x':
                if (sscanf(*text + 1, "%2x", &value) == 1 && (*text)[1] && (*text)[2]) {
                        *text += 2;
                        return (char)value;
                }
                return '?';
        default:
                return **text;
        }
}

static void ledger_line_unescape(const char *text, char *plain, size_t size) {
        size_t n = 0;

        for (; *text && n + 1 < size; text++) {
                if (*text == '\\' && text[1]) {
                        text++;
                        plain[n++] = unescape_one(&text);
                } else {
                        plain[n++] = *text;
                }
        }
        plain[n] = '\0';
}

/* A field takes at most four characters for each byte, and has no blank: a blank means that another, torn line runs
 * into this one. */
static int parse_field(const char *text, char ret_field[SCHEMA_NAME_MAX]) {
        if (strlen(text) > 4 * (SCHEMA_NAME_MAX - 1u) || strchr(text, ' '))
                return -EBADMSG;
        ledger_line_unescape(text, ret_field, SCHEMA_NAME_MAX);
        return 0;
}

int ledger_line_parse(const char *line, struct ledger_entry *ret_entry) {
        struct ledger_entry entry;
        const char *columns[COLUMNS];
        char copy[LEDGER_LINE_MAX], error[DLP_TEXT_MAX];
        char *rest = copy;

        if (line[0] == '#')
                return 1;
        if (strlen(line) >= sizeof(copy))
                return -EBADMSG;
        strcpy(copy, line);
        for (size_t i = 0; i < COLUMNS; i++)
                columns[i] = strsep(&rest, "\t");
        if (!columns[COLUMNS - 1])
                columns[COLUMNS - 1] = "";
        if (!columns[COLUMNS - 2] || rest || ledger_line_parse_number(columns[0], &entry.sample) < 0 ||
            ledger_line_parse_number(columns[1], &entry.n_met) < 0 || entry.n_met == 0 ||
            parse_time(columns[2], &entry.first_unix) < 0 || parse_time(columns[3], &entry.last_unix) < 0 ||
            parse_field(columns[6], entry.field) < 0)
                return -EBADMSG;
        ledger_line_unescape(columns[5], error, sizeof(error));
        why_set(&entry.error, 0, "%s", error);
        *ret_entry = entry;
        return 0;
}
