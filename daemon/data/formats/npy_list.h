/* data/formats/npy_list.h: which arrays a dataset of the format npy has. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/data/files/files.h"
#include "daemon/data/formats/npy_array.h"
#include "daemon/data/refusals.h"

#define NPY_ENDING ".npy"

struct npy_list {
        struct npy_array arrays[SCHEMA_FIELDS_MAX]; /* by name; each name once */
        uint32_t n_arrays;
        bool is_single;          /* one .npy file, whose field has no name of its own */
        bool is_raw;             /* set by the caller: one file of any name, without a header */
        bool is_folder;          /* all .npy files of the root are meant, or its only archive, */
        struct stat folder;      /* which looked like this when they were listed */
        struct refusals refused; /* what cannot be served, by the names of fields */
};

/* Fills a list of zeroes with the places of all arrays, which are then to be opened. Returns 0 or an errno with `why`.
 * What was found is to be given back in either case. Blocks for the folder, or for a few reads of an archive. */
int npy_list_find(struct npy_list *list, int root_fd, const struct files *files, struct why *why);

/* "x.npy" -> "x", as a field is called. */
void npy_list_name(const char *file, char ret_name[SCHEMA_NAME_MAX]);

/* Leaves the array out, because of `error`, if that says something about it and nothing else. Returns 0, or `error`. */
int npy_list_refuse(struct npy_list *list, struct npy_array *array, int error, const struct why *why);

/* Takes a struct of zeroes. */
void npy_list_fini(struct npy_list *list);
