#include "client/lib/daemon/dataset_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/path_url.h"

#define BLANKS " \t\n"

static void free_dataset(struct dli_dataset *dataset) {
        free(dataset->name);
        free(dataset->path);
        for (size_t i = 0; i < dataset->n_options; i++)
                free(dataset->options[i]);
        *dataset = (struct dli_dataset){ 0 };
}

void dli_datasets_free(struct dli_datasets *datasets) {
        for (size_t i = 0; i < datasets->n; i++)
                free_dataset(&datasets->list[i]);
        free(datasets->list);
        *datasets = (struct dli_datasets){ 0 };
}

bool dli_is_path(const char *word) {
        return strchr(word, '/') || word[0] == '~' || strcmp(word, ".") == 0 || strcmp(word, "..") == 0;
}

static int dataset_text_no_memory(struct why *reason) {
        return why_set(reason, -ENOMEM, "no memory for a loader");
}

/* ---- options --------------------------------------------------------------------------------------------------- */

/* Reads a value at *at, in quotes or up to a blank or brace, without the quotes and their backslashes. */
static int dataset_text_read_value(const char **at, char **ret_value, struct why *reason) {
        const char *from = *at;
        _cleanup_(freep) char *value = malloc(strlen(from) + 1);
        size_t n = 0;

        if (!value)
                return dataset_text_no_memory(reason);
        if (*from != '"') {
                n = strcspn(from, BLANKS "}");
                memcpy(value, from, n);
                *at = from + n;
        } else {
                for (from++; *from && *from != '"'; from++) {
                        if (*from == '\\' && from[1])
                                from++;
                        value[n++] = *from;
                }
                if (!*from)
                        return why_set(reason, -EINVAL, "dataset: a quote is not closed: %.100s", *at);
                *at = from + 1;
        }
        value[n] = '\0';
        *ret_value = TAKE_PTR(value);
        return 0;
}

static int keep_option(struct dli_dataset *dataset, const char *key, size_t n_key, const char *value,
                       struct why *reason) {
        char *option = NULL;

        if (n_key == 4 && memcmp(key, "path", 4) == 0) {
                if (dataset->path)
                        return why_set(reason, -EINVAL, "dataset: the path is given twice: %s and %s", dataset->path,
                                       value);
                dataset->path = strdup(value);
                return dataset->path ? 0 : dataset_text_no_memory(reason);
        }
        if (dataset->n_options == DLI_OPTIONS_MAX)
                return why_set(reason, -EINVAL, "dataset: more than %u keys", DLI_OPTIONS_MAX);
        if (asprintf(&option, "%.*s=%s", (int)n_key, key, value) < 0)
                return dataset_text_no_memory(reason);
        dataset->options[dataset->n_options++] = option;
        return 0;
}

/* Reads KEY = VALUE up to the closing brace; *at is after the opening one, and then after the closing one. */
static int dataset_text_read_options(const char **at, struct dli_dataset *dataset, struct why *reason) {
        const char *from = *at;
        int r = 0;

        while (r == 0) {
                _cleanup_(freep) char *value = NULL;
                const char *key;
                size_t n_key;

                from += strspn(from, BLANKS ",");
                if (*from == '}')
                        break;
                key = from;
                n_key = strspn(from, "abcdefghijklmnopqrstuvwxyz_");
                from += n_key;
                from += strspn(from, BLANKS);
                if (n_key == 0 || *from != '=')
                        return why_set(reason, -EINVAL,
                                       "dataset: %s; write keys as in dataloaderd.conf, such as /data/photos "
                                       "{split=\"0:90%%\"}: %.100s",
                                       *key ? "KEY=\"VALUE\" is expected" : "a '}' is missing", *key ? key : *at);
                from++;
                from += strspn(from, BLANKS);
                r = dataset_text_read_value(&from, &value, reason);
                if (r == 0)
                        r = keep_option(dataset, key, n_key, value, reason);
        }
        *at = from + 1;
        return r;
}

/* ---- datasets -------------------------------------------------------------------------------------------------- */

/* Where a word ends: at " + ", at " {", or at the end of the text; without the blanks before that. */
static size_t dataset_text_word_length(const char *text) {
        const char *end = text + strlen(text), *plus = strstr(text, " + "), *brace = strstr(text, " {");

        if (plus && plus < end)
                end = plus;
        if (brace && brace < end)
                end = brace;
        while (end > text && strchr(BLANKS, end[-1]))
                end--;
        return (size_t)(end - text);
}

static int dataset_text_take_word(const char *word, size_t n, struct dli_dataset *dataset, struct why *reason) {
        _cleanup_(freep) char *copy = strndup(word, n);

        if (!copy)
                return dataset_text_no_memory(reason);
        if (n == 0)
                return why_set(reason, -EINVAL,
                               "dataset: a name is empty; write names or paths with a + between them, as in \"a + b\"");
        if (strstr(copy, "://") && !path_is_url(copy))
                return why_set(reason, -EINVAL, "dataset: %s: the URL of a dataset begins with " PATH_URL_SCHEMES,
                               copy);
        if (dli_is_path(copy))
                dataset->path = TAKE_PTR(copy);
        else
                dataset->name = TAKE_PTR(copy);
        return 0;
}

/* Reads one dataset and what follows it up to the next one. */
static int dataset_text_read_dataset(const char **at, struct dli_dataset *dataset, struct why *reason) {
        const char *from = *at + strspn(*at, BLANKS);
        int r = 0;

        if (*from != '{') {
                size_t n = dataset_text_word_length(from);

                r = dataset_text_take_word(from, n, dataset, reason);
                from += n;
                from += strspn(from, BLANKS);
        }
        if (r == 0 && *from == '{') {
                from++;
                r = dataset_text_read_options(&from, dataset, reason);
        }
        if (r < 0)
                return r;
        if (dataset->name && (dataset->path || dataset->n_options > 0))
                return why_set(reason, -EINVAL,
                               "dataset: %s is a name, and what it has is in the configuration; keys are for a path, "
                               "as in ./%s {...}",
                               dataset->name, dataset->name);
        if (!dataset->name && (!dataset->path || !*dataset->path))
                return why_set(reason, -EINVAL, "dataset: a path is missing, as in {path=\"/data/photos\"}");
        from += strspn(from, BLANKS);
        if (*from && *from != '+')
                return why_set(reason, -EINVAL, "dataset: a + is expected between two datasets, not %.100s", from);
        *at = from;
        return 0;
}

static int dataset_text_add(struct dli_datasets *datasets, struct dli_dataset *dataset, struct why *reason) {
        struct dli_dataset *more;

        if (datasets->n == DLP_PARTS_MAX)
                return why_set(reason, -EINVAL, "dataset: more than %u datasets", DLP_PARTS_MAX);
        more = realloc(datasets->list, (datasets->n + 1) * sizeof(*more));
        if (!more)
                return dataset_text_no_memory(reason);
        datasets->list = more;
        datasets->list[datasets->n++] = *dataset;
        datasets->has_path = datasets->has_path || dataset->path;
        *dataset = (struct dli_dataset){ 0 };
        return 0;
}

int dli_datasets_parse(const char *text, struct dli_datasets *ret_datasets, struct why *reason) {
        struct dli_datasets datasets = { 0 };
        int r;

        do {
                struct dli_dataset dataset = { 0 };

                if (datasets.n > 0)
                        text++; /* the plus */
                r = dataset_text_read_dataset(&text, &dataset, reason);
                if (r == 0)
                        r = dataset_text_add(&datasets, &dataset, reason);
                free_dataset(&dataset);
        } while (r == 0 && *text);
        if (r < 0)
                dli_datasets_free(&datasets);
        else
                *ret_datasets = datasets;
        return r;
}

int dli_datasets_of_path(const char *path, struct dli_datasets *ret_datasets, struct why *reason) {
        struct dli_datasets datasets = { 0 };
        struct dli_dataset dataset = { .path = strdup(path) };
        int r = dataset.path ? dataset_text_add(&datasets, &dataset, reason) : dataset_text_no_memory(reason);

        free_dataset(&dataset);
        if (r == 0)
                *ret_datasets = datasets;
        return r;
}
