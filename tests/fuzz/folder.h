/* tests/fuzz/folder.h: a folder in memory for what a fuzzer reads and writes; removed when the process ends.
 *
 * Whatever goes wrong here ends the process: it is the machine's fault, not a find. */
#pragma once

#include <limits.h>
#include <stddef.h>

/* Makes the folder, once a process, on the first call. Its path stays valid. */
const char *folder(void);

/* FOLDER/NAME. Returns `path`. */
const char *folder_path(const char *name, char path[PATH_MAX]);

/* Makes or replaces a file; parent folders must be there. */
void folder_write(const char *name, const void *bytes, size_t n_bytes);
void folder_make(const char *name);

/* Makes a folder or file look unchanged for an hour: building an index waits for what changed a moment ago. */
void folder_age(const char *name);

/* Removes a file, or a folder with all that is in it. What is not there is fine; links are removed, not followed. */
void folder_remove(const char *name);

/* Bytes of a file of the tree (relative to its root), the caller's (free); NUL after them. */
char *tree_bytes(const char *path, size_t *ret_n);
