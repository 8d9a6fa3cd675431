#include "client/lib/orders/column_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/plain_locale.h"

/* Both kinds of the same numbers, until it is known which one the column has. */
struct numbers {
        int64_t *wholes; /* NULL once a fraction was met */
        double *reals;
        size_t n, n_room;
        bool is_whole;
};

static int column_file_grow(struct numbers *numbers) {
        size_t n = numbers->n_room ? 2 * numbers->n_room : 4096;
        int64_t *wholes = realloc(numbers->wholes, n * sizeof(*wholes));
        double *reals;

        if (wholes)
                numbers->wholes = wholes;
        reals = wholes ? realloc(numbers->reals, n * sizeof(*reals)) : NULL;
        if (!reals)
                return -ENOMEM;
        numbers->reals = reals;
        numbers->n_room = n;
        return 0;
}

static int refuse_line(const char *path, size_t number, const char *line, struct why *why) {
        return why_set(why, -EINVAL, "%s, line %zu: \"%.40s\" is not a number", path, number, line);
}

/* Adds the number of a line without its end. NaN and infinity are numbers here: who uses them refuses them. */
static int column_file_add(struct numbers *numbers, const char *path, size_t number, const char *line,
                           struct why *why) {
        char *end;

        if (numbers->n == numbers->n_room && column_file_grow(numbers) < 0)
                return why_errno(why, -ENOMEM, "%s", path);
        numbers->reals[numbers->n] = strtod(line, &end);
        if (end == line || end[strspn(end, " \t\r")] != '\0')
                return refuse_line(path, number, line, why);
        if (numbers->is_whole) {
                errno = 0;
                numbers->wholes[numbers->n] = strtoll(line, &end, 10);
                numbers->is_whole = end != line && errno == 0 && end[strspn(end, " \t\r")] == '\0';
        }
        numbers->n++;
        return 0;
}

static int column_file_read_lines(FILE *file, const char *path, struct numbers *numbers, struct why *why) {
        _cleanup_(plain_locale_endp) locale_t before = plain_locale_begin();
        char *line = NULL;
        size_t size = 0, number = 0;
        int r = 0;

        while (r == 0) {
                ssize_t length;

                errno = 0;
                length = getline(&line, &size, file);
                if (length < 0)
                        break;
                number++;
                if (length > 0 && line[length - 1] == '\n')
                        line[length - 1] = '\0';
                if (line[strspn(line, " \t\r")] != '\0')
                        r = column_file_add(numbers, path, number, line, why);
        }
        if (r == 0 && !feof(file)) /* an error of reading, or no memory for a line: not the end of the numbers */
                r = why_errno(why, errno > 0 ? -errno : -EIO, "%s", path);
        free(line);
        return r;
}

int dli_column_file_read(const char *path, struct dlp_column *ret_column, void **ret_values, struct why *why) {
        struct numbers numbers = { .is_whole = true };
        FILE *file = fopen(path, "re");
        int r;

        if (!file)
                return why_errno(why, -errno, "%s", path);
        r = column_file_read_lines(file, path, &numbers, why);
        fclose(file);
        if (r < 0) {
                free(numbers.wholes);
                free(numbers.reals);
                return r;
        }
        free(numbers.is_whole ? (void *)numbers.reals : (void *)numbers.wholes);
        *ret_values = numbers.is_whole ? (void *)numbers.wholes : (void *)numbers.reals;
        *ret_column = (struct dlp_column){ .dtype = numbers.is_whole ? DLP_DTYPE_INT64 : DLP_DTYPE_FLOAT64,
                                           .values = *ret_values,
                                           .n_values = numbers.n,
                                           .n_samples = numbers.n };
        return 0;
}
