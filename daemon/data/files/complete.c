#include "daemon/data/files/complete.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define SEQUENCE   6u /* digits of the number that a staging puts before a name */
#define DIGITS_MAX 8u
#define SHOWN_MAX  3u

/* "data/train-00001-of-00003.parquet", and as others write it: "c4-train.00001-of-00003", "part_1_of_3", "x-1of3" */
struct numbered {
        const char *name;
        size_t n_prefix; /* "data/train-" */
        const char *of;  /* "-of-" */
        unsigned n_of, n_digits;
        uint64_t number, total;
        bool is_usual;    /* "-of-", of which numbers begin at 0 */
        const char *rest; /* ".parquet" */
};

static bool complete_read_digits(const char *text, size_t n, uint64_t *ret_number) {
        uint64_t number = 0;

        if (n == 0 || n > DIGITS_MAX)
                return false;
        for (size_t i = 0; i < n; i++)
                number = number * 10 + (uint64_t)(text[i] - '0');
        *ret_number = number;
        return true;
}

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

/* "1-of-3" or "1of3", from the "o" on. Folders count only as "x-1-of-3": others are called so for other reasons, such
 * as "run_1_of_3". */
static bool complete_read_around(const char *name, const char *of, struct numbered *ret_numbered) {
        bool is_spaced = of > name && (of[-1] == '-' || of[-1] == '_');
        const char *begin = is_spaced ? of - 1 : of, *end = of + 2, *digits;
        size_t n_after;

        if (is_spaced && *end++ != of[-1])
                return false;
        n_after = strspn(end, "0123456789");
        for (digits = begin; digits > name && is_digit(digits[-1]);)
                digits--;
        *ret_numbered = (struct numbered){ .name = name,
                                           .n_prefix = (size_t)(digits - name),
                                           .of = begin,
                                           .n_of = (unsigned)(end - begin),
                                           .n_digits = (unsigned)(begin - digits),
                                           .is_usual = is_spaced && of[-1] == '-' && strncmp(of, "of", 2) == 0,
                                           .rest = end + n_after };
        return digits > name && strchr("-_.", digits[-1]) &&
               ((ret_numbered->is_usual && digits[-1] == '-') || !strchr(end, '/')) &&
               complete_read_digits(digits, (size_t)(begin - digits), &ret_numbered->number) &&
               complete_read_digits(end, n_after, &ret_numbered->total) && ret_numbered->number <= ret_numbered->total;
}

/* The last such place of the name counts. */
static bool complete_read_name(const char *name, struct numbered *ret_numbered) {
        struct numbered numbered;
        bool is_numbered = false;

        for (const char *at = name; (at = strpbrk(at, "oO")); at++) {
                if (strncasecmp(at, "of", 2) != 0 || !complete_read_around(name, at, &numbered))
                        continue;
                *ret_numbered = numbered;
                is_numbered = true;
        }
        return is_numbered;
}

static int compare_sets(const struct numbered *one, const struct numbered *other) {
        size_t n = one->n_prefix < other->n_prefix ? one->n_prefix : other->n_prefix;
        int order = memcmp(one->name, other->name, n);

        if (order == 0)
                order = (one->n_prefix > other->n_prefix) - (one->n_prefix < other->n_prefix);
        return order != 0 ? order : (one->total > other->total) - (one->total < other->total);
}

static int by_number(const void *one, const void *other) {
        const struct numbered *a = one, *b = other;
        int order = compare_sets(a, b);

        return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

/* Files of one set, by number; some may have the same one. */
static int check_set(const struct numbered *set, size_t n, struct why *why) {
        bool is_from_one = set[n - 1].number == set[n - 1].total || (!set->is_usual && set->number > 0);
        uint64_t base = is_from_one ? 1 : 0, n_missing = 0;
        bool is_alike = true;
        char shown[1024] = "";
        size_t at = 0, used = 0;

        for (size_t i = 1; i < n; i++)
                is_alike &= strcmp(set[i].rest, set[0].rest) == 0;
        for (uint64_t number = base; number < set->total + base; number++) {
                while (at < n && set[at].number < number)
                        at++;
                if (at < n && set[at].number == number)
                        continue;
                if (n_missing++ < SHOWN_MAX && used < sizeof(shown))
                        used += (size_t)snprintf(
                                shown + used, sizeof(shown) - used, "%s%.*s%0*" PRIu64 "%.*s%0*" PRIu64 "%s",
                                used ? ", " : "", (int)set->n_prefix, set->name, (int)set->n_digits, number,
                                (int)set->n_of, set->of, (int)set->n_digits, set->total, is_alike ? set->rest : "");
        }
        if (n_missing == 0)
                return 0;
        return why_set(why, -ENOENT,
                       "of %" PRIu64 " files, as their names say, %" PRIu64
                       " %s missing: %s%s; bring %s, name the files "
                       "that are meant in the path, or set allow_missing = \"yes\"",
                       set->total, n_missing, n_missing == 1 ? "is" : "are", shown,
                       n_missing > SHOWN_MAX ? ", ..." : "", n_missing == 1 ? "it" : "them");
}

size_t files_sequence(const char *const *names, size_t n) {
        uint64_t number, before = 0;

        for (size_t i = 0; i < n; i++) {
                const char *base = text_after_slash(names[i]);

                if (strspn(base, "0123456789") != SEQUENCE || base[SEQUENCE] != '-' ||
                    !complete_read_digits(base, SEQUENCE, &number) || (i > 0 && number <= before))
                        return 0;
                before = number;
        }
        return n > 1 ? SEQUENCE + 1 : 0;
}

int files_check_complete(const char *const *names, size_t n, struct why *why) {
        _cleanup_(freep) struct numbered *files = calloc(n + 1, sizeof(*files));
        size_t n_before = files_sequence(names, n), n_files = 0;
        int r = 0;

        if (!files)
                return why_set(why, -ENOMEM, "no memory for the names of its files");
        for (size_t i = 0; i < n; i++)
                n_files += complete_read_name(n_before ? text_after_slash(names[i]) + n_before : names[i],
                                              &files[n_files]);
        qsort(files, n_files, sizeof(*files), by_number);
        for (size_t begin = 0, end; begin < n_files && r == 0; begin = end) {
                for (end = begin + 1; end < n_files && compare_sets(&files[begin], &files[end]) == 0;)
                        end++;
                r = check_set(files + begin, end - begin, why);
        }
        return r;
}
