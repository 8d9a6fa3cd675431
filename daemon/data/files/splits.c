#include "daemon/data/files/splits.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "daemon/data/files/complete.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define SPLITS_MAX 64u

/* A part of a file's name. */
struct split_name {
        const char *at;
        size_t n; /* 0: it has none */
};

static size_t count_digits(const char *text) {
        size_t n = 0;

        while (isdigit((unsigned char)text[n]))
                n++;
        return n;
}

/* What comes before "-00000-of-00005". Older writers have "-" and a digest after it. */
static struct split_name numbered_split(const char *name) {
        for (const char *dash = strchr(name, '-'); dash; dash = strchr(dash + 1, '-')) {
                size_t n = count_digits(dash + 1);
                const char *after = dash + 1 + n;

                if (dash == name || n < 5 || strncmp(after, "-of-", 4) != 0)
                        continue;
                n = count_digits(after + 4);
                after += 4 + n;
                if (n >= 5 && (*after == '\0' || *after == '-' || *after == '.'))
                        return (struct split_name){ name, (size_t)(dash - name) };
        }
        return (struct split_name){ name, 0 };
}

/* Length of the usual word for a split that a text begins with. */
static size_t splits_word_at(const char *text) {
        static const char *const WORDS[] = { "training", "train",   "validation", "valid",      "val",
                                             "dev",      "testing", "test",       "evaluation", "eval" };

        for (size_t i = 0; i < ARRAY_SIZE(WORDS); i++) {
                size_t n = strlen(WORDS[i]);

                if (strncasecmp(text, WORDS[i], n) == 0 && strchr("-_. 0123456789", text[n]))
                        return n;
        }
        return 0;
}

/* ".csv", "-0001.tar", ".00000-of-01024.json": what may follow a word at the end of a name. */
static bool splits_is_ending(const char *text) {
        text += *text && strchr("-_.", *text) && isdigit((unsigned char)text[1]);
        text += count_digits(text);
        if ((strncmp(text, "-of-", 4) == 0 || strncmp(text, "_of_", 4) == 0) && isdigit((unsigned char)text[4]))
                text += 4 + count_digits(text + 4);
        return *text == '.' || *text == '\0';
}

static struct split_name split_of(const char *name) {
        struct split_name split = numbered_split(name);

        if (split.n > 0)
                return split;
        split.n = splits_word_at(name);
        for (const char *at = name; *at && split.n == 0; at++) {
                size_t n = strchr("-_.", *at) ? splits_word_at(at + 1) : 0;

                if (n > 0 && splits_is_ending(at + 1 + n))
                        split = (struct split_name){ at + 1, n };
        }
        return split;
}

size_t splits_list(const char *const *names, size_t n, char *text, size_t size) {
        struct split_name splits[SPLITS_MAX];
        size_t n_splits = 0, at = 0, n_sequence = files_sequence(names, n);

        text[0] = '\0';
        for (size_t i = 0; i < n && n_splits < SPLITS_MAX; i++) {
                struct split_name split = split_of(text_after_slash(names[i]) + n_sequence);
                bool is_new = split.n > 0;

                for (size_t k = 0; k < n_splits && is_new; k++)
                        is_new = splits[k].n != split.n || strncmp(splits[k].at, split.at, split.n) != 0;
                if (!is_new)
                        continue;
                if (at < size)
                        at += (size_t)snprintf(text + at, size - at, "%s%.*s", n_splits ? ", " : "", (int)split.n,
                                               split.at);
                splits[n_splits++] = split;
        }
        return n_splits;
}

/* Is a usual word for one among its words? */
static bool is_usual(struct split_name split) {
        for (size_t i = 0; i < split.n; i++)
                if ((i == 0 || strchr("-_.", split.at[i - 1])) && splits_word_at(split.at + i) > 0)
                        return true;
        return false;
}

static bool have_usual(const char *const *names, size_t n, size_t n_sequence) {
        for (size_t i = 0; i < n; i++)
                if (is_usual(split_of(text_after_slash(names[i]) + n_sequence)))
                        return true;
        return false;
}

bool splits_has(const char *path, const char *split) {
        const char *name = text_after_slash(path);
        struct split_name own = split_of(name);
        size_t n = strlen(split);

        /* "squad-train-00000-of-00002" is of "squad-train", and of "train" as well */
        return n > 0 && ((own.n >= n && strncmp(own.at + own.n - n, split, n) == 0 &&
                          (own.n == n || strchr("-_.", own.at[own.n - n - 1]))) ||
                         (strncmp(name, split, n) == 0 && name[n] == '.'));
}

int splits_choose(const char *root, const char *split, bool are_numbered, const char **names, size_t *n,
                  struct why *why) {
        size_t n_sequence = files_sequence(names, *n), n_chosen = 0;
        const char *first = *n > 0 ? names[0] : "", *ending = strrchr(text_after_slash(first), '.');
        char splits[256];

        if (split) {
                for (size_t i = 0; i < *n; i++)
                        if (splits_has(text_after_slash(names[i]) + n_sequence, split))
                                names[n_chosen++] = names[i];
                *n = n_chosen;
                return 0;
        }
        if (!ending || strpbrk(ending, "-0123456789"))
                ending = "";
        if (splits_list(names, *n, splits, sizeof(splits)) < 2 || !(are_numbered || have_usual(names, *n, n_sequence)))
                return 0;
        return why_set(why, -EINVAL,
                       "%s: has several splits: choose one with split = \"...\": %s; or name the files in the path; "
                       "%s/%.*s*%s names all of them",
                       root, splits, root, (int)(text_after_slash(first) - first), first, ending);
}
