/* fetch/secret_file.h: files with secrets, which nobody else may read, and the lines of sections that they hold.
 *
 * Such a file is a regular one of this user or of root, of 64 KiB at most; others may not read it (chmod 600), but a
 * group may read one of root's. No message ever quotes a value. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/why.h"

struct secret_file {
        char *text; /* NULL: nothing was read */
        size_t n_bytes;
};

/* Reads it. Returns 0; -EACCES if others may read it, -EINVAL if it is not such a file, -ENOENT, ... with `why`;
 * -ENOMEM.
 */
int secret_file_read(const char *path, struct secret_file *ret_file, struct why *why);

/* Overwrites what was read. Of zeros, too. */
void secret_file_fini(struct secret_file *file);

enum secret_line {
        SECRET_END,
        SECRET_SECTION, /* [key] */
        SECRET_VALUE,   /* key = value */
        SECRET_OTHER,   /* neither: key is the line */
};

/* Goes through a text and cuts it. Blank lines and those that begin with '#' or ';' are passed over. */
struct secret_lines {
        char *rest; /* NULL: the end */
        unsigned int number;
        bool is_indented; /* the line that was returned */
        char *key, *value;
};

enum secret_line secret_lines_next(struct secret_lines *lines);
