/* lib/daemon/dataset_text.h: what the option `dataset` says.
 *
 *         photos                                          a dataset of the daemon's configuration
 *         ./photos   /data/photos   ~/photos              a path: whatever has a '/'
 *         /data/photos {split="0:90%" fields="image"}     with keys of a dataset section of dataloaderd.conf
 *         {path="/data/cats + dogs" split="0:90%"}        the path as a key, whatever is in it
 *         a + /data/b                                     several, one after the other
 *
 * In quotes a backslash takes the next character as it is. A value without quotes ends at a blank or at the brace. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/lib/reason.h"
#include "proto/limits.h"

#define DLI_OPTIONS_MAX 64u /* of one dataset */

struct dli_dataset {
        char *name; /* of the configuration; NULL: it is at `path` */
        char *path;
        char *options[DLI_OPTIONS_MAX]; /* "KEY=VALUE", without that of the path */
        size_t n_options;
};

struct dli_datasets {
        struct dli_dataset *list; /* n of them */
        size_t n;
        bool has_path; /* one of them at least has a path */
};

/* Does a word name a file or folder? */
bool dli_is_path(const char *word);

/* Reads the text; looks at no file. -EINVAL, with the place; -ENOMEM. */
int dli_datasets_parse(const char *text, struct dli_datasets *ret_datasets, struct why *reason);

/* One path, without options, as it is. -ENOMEM. */
int dli_datasets_of_path(const char *path, struct dli_datasets *ret_datasets, struct why *reason);

void dli_datasets_free(struct dli_datasets *datasets); /* takes zeroes */
