/* tests/support/tree.h: a folder for one test, made in the temporary directory and removed with all that is in it. */
#pragma once

#include <limits.h>
#include <stddef.h>

struct tree {
        char root[64];
        int fd; /* O_DIRECTORY */
};

/* Makes an empty folder that everybody may read. Whatever goes wrong here ends the test. */
void tree_make(struct tree *tree);

/* Removes it. Links are removed, not followed. */
void tree_remove(struct tree *tree);

/* All paths are relative to the root. Parent folders are made where they are missing. */
void tree_dir(const struct tree *tree, const char *path);
void tree_file(const struct tree *tree, const char *path, const char *text);
void tree_link(const struct tree *tree, const char *path, const char *target);
void tree_fifo(const struct tree *tree, const char *path);

/* Makes it look long unchanged: an index build waits for folders that changed a moment ago. */
void tree_age(const struct tree *tree, const char *path);
