/* tests/support/shown_samples.h: what a format finds in a tree, as text: the schema and each sample. */
#pragma once

#include "daemon/data/dataset.h"
#include "tests/support/tree.h"

/* The dataset TREE/BELOW, without saving its index; returns what dataset_open() returns. `options`: lines KEY=VALUE, or
 * NULL. */
int samples_open(const struct tree *tree, const char *format, const char *below, const char *options,
                 struct dataset **ret_dataset, struct why *why);

/* Expects this text. Its first line is the schema: "name:kind" of each field but the name of the sample, where the kind
 * is b for bytes, t text, p a picture, or i8, f4, f8, b1 and [shape] of a value; then "'" if it is stored, and "?" if
 * it may be absent. After it a line for each sample: its name, and the bytes or values of its fields; "-" is absent. */
void samples_expect(const struct tree *tree, const char *format, const char *below, const char *options,
                    const char *expected);

/* Expects that it is refused with these words. */
void samples_refuse(const struct tree *tree, const char *format, const char *below, const char *options,
                    const char *words);
