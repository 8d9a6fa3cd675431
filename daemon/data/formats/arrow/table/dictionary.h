/* data/formats/arrow/table/dictionary.h: the values that dictionary-encoded columns refer to.
 *
 * A dictionary message comes before the batches that use it. It replaces the dictionary with its id, or adds to it
 * (a delta). */
#pragma once

#include <stdint.h>

#include "daemon/data/growing.h"

struct arrow_dictionary {
        int64_t id;
        uint64_t n;
        struct growing cells;   /* struct arrow_cell, if its values have cells */
        struct growing numbers; /* if they are numbers or bools: their bytes */
        struct growing valid;   /* bool */
        uint64_t n_plain;       /* bytes */
        struct growing plain;   /* struct growing: what was unpacked, to which the cells refer */
};

struct arrow_dictionaries {
        struct growing all; /* struct arrow_dictionary */
};

/* The dictionary with this id, NULL if there is none. */
struct arrow_dictionary *arrow_dictionary_find(const struct arrow_dictionaries *dictionaries, int64_t id);

/* The same; makes an empty one if there is none. NULL: no memory. */
struct arrow_dictionary *arrow_dictionary_get(struct arrow_dictionaries *dictionaries, int64_t id);

/* Removes all values. */
void arrow_dictionary_clear(struct arrow_dictionary *dictionary);

/* Takes a struct of zeroes. */
void arrow_dictionaries_fini(struct arrow_dictionaries *dictionaries);
