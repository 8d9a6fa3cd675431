/* dlctl/trace/trace_file.h: a file that appears under its name when it is whole, compressed if the name says so.
 *
 * It is written beside its place under a hidden name, which a signal that ends the program may remove. */
#pragma once

#include <stdbool.h>

#include "proto/base/why.h"

struct traced_file;

/* Begins a file; "-": standard output. `force`: a file of that name is replaced. -EEXIST, and what open() fails with:
 * before anything is traced. */
int traced_file_begin(const char *path, bool force, struct traced_file **ret_file, struct why *why);

/* Adds text. An error is kept until the end. */
void traced_file_print(struct traced_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Completes the file and frees it. On failure nothing is left of it. */
int traced_file_end(struct traced_file *file, struct why *why);

/* Gives the file up. Takes NULL. */
void traced_file_drop(struct traced_file *file);

/* What is hidden so far is removed. For a signal's handler. */
void traced_file_unlink(void);
