/* data/files/files.h: which files a dataset's path means.
 *
 * A path is a folder, one file, or a pattern with braces (base/patterns/braces.h) that names files in the order in
 * which it expands; or several files and patterns, "/d/a-{0..9}.tar::/e/b.tar", whose files follow each other. Formats
 * get an open folder and the names of files in it; it does not matter to them where the names came from.
 *
 * A path that does not exist may also be the prefix of an index of tokens, PATH.idx, which then is the file.
 *
 * A path that exists as written is neither a pattern nor has it parts, whatever is in it. The root of a pattern is the
 * folder before its first brace; that of several parts the deepest folder in which the roots of all of them lie. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"

#define FILES_JOINT      "::" /* between two parts of a path */
#define FILES_MERGED_MAX 16u  /* lists that are merged with a path */

struct files {
        const char *root;         /* the folder that holds all files, and that is opened */
        const char *const *names; /* of the files, relative to the root and within it, in the dataset's order */
        bool is_pipe;             /* the one file is a FIFO, whose data come once */
        size_t n_names;           /* 0: the whole folder; the format decides which files it takes */
        size_t n_merged;          /* lists of n_names more files each, whose names follow: see files_find() */
        uint32_t n_hidden;        /* files that a pattern has passed over because they are hidden */
        void *memory[2];          /* of the above. A caller that only sets a root leaves it NULL */
};

/* All names: those of the path, and those that are merged with them. */
static inline size_t files_n_all(const struct files *files) {
        return files->n_names * (1 + files->n_merged);
}

/* Finds out what `path` means. `merge`: further lists of files, "/d/a-{0..9}.tar, /d/b-{0..9}.tar", each of as many as
 * the path names, which are not samples themselves, but of which each has something for the samples of the path's file
 * in the same place; NULL: none. `follows_links` as in beneath_root(); the path itself may be a link. Returns 0; or an
 * errno with `why`, which names the path: -ENOENT or another one. For patterns and parts, -EINVAL if they are wrong,
 * name a file twice or lead out of their root, and -E2BIG if they are too many or name too many files. It is not
 * checked whether these files exist. Blocks for a stat() of each part. */
int files_find(const char *path, const char *merge, bool follows_links, struct files *ret_files, struct why *why);

/* Takes a struct of zeroes. */
void files_fini(struct files *files);

/* Do the named files exist? A missing file, or one that is not regular, is an error that names it. Blocks for a stat()
 * of each file. Returns 0 or an errno with `why`. */
int files_check(const struct files *files, int root_fd, struct why *why);
