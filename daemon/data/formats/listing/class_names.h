/* data/formats/listing/class_names.h: texts as classes: each record has one, and the label is its place among all of them
 * in Python's order. One thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/data/growing.h"

struct class_names {
        struct growing texts;  /* each with its NUL */
        struct growing names;  /* struct class_name, in the order in which they were found */
        struct growing places; /* uint32_t: an open-addressed table of them, plus 1; 0: an empty place */
        struct growing rows;   /* uint32_t for each record: its name, plus 1; 0: none */
        struct growing sorted; /* uint32_t: the names in order, once they are sorted */
};

struct class_name {
        uint64_t text; /* offset into texts */
        uint32_t label;
};

void class_names_fini(struct class_names *names);

/* The record has this class; the last one counts. `text` has no NUL. -ENOMEM; -E2BIG: too many classes. */
int class_names_put(struct class_names *names, uint64_t row, const char *text, size_t n);

/* The record has none, whatever it had before. */
void class_names_forget(struct class_names *names, uint64_t row);

/* All records were read: gives the labels. -ENOMEM, -ECANCELED. */
int class_names_sort(struct class_names *names);

size_t class_names_count(const struct class_names *names);

/* The name of a label, and the label of a record; -1: it has none. After class_names_sort(). */
const char *class_names_at(const struct class_names *names, size_t label);
int32_t class_names_label(const struct class_names *names, uint64_t row);
