#include "proto/base/nearest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NONE      (~0u)
#define SEPARATOR " ,|"

/* Lower case; dashes are underscores. Does not depend on the locale. */
static char nearest_fold(char character) {
        if (character >= 'A' && character <= 'Z')
                return (char)(character - 'A' + 'a');
        return character == '-' ? '_' : character;
}

static unsigned nearest_least(unsigned a, unsigned b) {
        return a < b ? a : b;
}

/* How many letters are inserted, left out, replaced or swapped. Both have fewer than NEAREST_NAME_MAX. */
static unsigned distance(const char *a, size_t n_a, const char *b, size_t n_b) {
        unsigned rows[3][NEAREST_NAME_MAX];

        for (size_t j = 0; j <= n_b; j++)
                rows[0][j] = (unsigned)j;
        for (size_t i = 1; i <= n_a; i++) {
                unsigned *row = rows[i % 3];
                const unsigned *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];

                row[0] = (unsigned)i;
                for (size_t j = 1; j <= n_b; j++) {
                        unsigned differs = nearest_fold(a[i - 1]) != nearest_fold(b[j - 1]);

                        row[j] = nearest_least(before[j - 1] + differs, nearest_least(before[j], row[j - 1]) + 1);
                        if (i > 1 && j > 1 && nearest_fold(a[i - 1]) == nearest_fold(b[j - 2]) &&
                            nearest_fold(a[i - 2]) == nearest_fold(b[j - 1]))
                                row[j] = nearest_least(row[j], earlier[j - 2] + 1);
                }
        }
        return rows[n_a % 3][n_b];
}

static bool nearest_begins_with(const char *name, size_t n_name, const char *word, size_t n_word) {
        for (size_t i = 0; i < n_word; i++)
                if (i == n_name || nearest_fold(name[i]) != nearest_fold(word[i]))
                        return false;
        return true;
}

static void offer(struct nearest *nearest, const char *name, size_t n) {
        size_t longer = n > nearest->n_word ? n : nearest->n_word;
        unsigned cost, limit = longer < 6 ? 1 : (unsigned)(longer / 3);

        if (n == 0 || nearest->n_word < 2 || longer >= NEAREST_NAME_MAX)
                return;
        cost = distance(nearest->word, nearest->n_word, name, n);
        if (cost >= nearest->cost ||
            (cost > limit && (nearest->n_word < 3 || !nearest_begins_with(name, n, nearest->word, nearest->n_word))))
                return;
        nearest->cost = cost;
        memcpy(nearest->name, name, n);
        nearest->name[n] = '\0';
}

void nearest_begin(struct nearest *nearest, const char *word, size_t n) {
        nearest->word = word;
        nearest->n_word = n;
        nearest->cost = NONE;
        nearest->name[0] = '\0';
}

void nearest_offer(struct nearest *nearest, const char *name) {
        offer(nearest, name, strnlen(name, NEAREST_NAME_MAX));
}

const char *nearest_hint(struct nearest *nearest) {
        if (!nearest->name[0])
                return "";
        snprintf(nearest->hint, sizeof(nearest->hint), " (did you mean \"%s\"?)", nearest->name);
        return nearest->hint;
}

const char *nearest_in(struct nearest *nearest, const char *word, size_t n, const char *names) {
        nearest_begin(nearest, word, n);
        for (names += strspn(names, SEPARATOR); *names; names += strspn(names, SEPARATOR)) {
                size_t n_name = strcspn(names, SEPARATOR);

                if (n_name != 2 || memcmp(names, "or", 2) != 0)
                        offer(nearest, names, n_name);
                names += n_name;
        }
        return nearest_hint(nearest);
}
