/* data/files/below.h: finds the folders, anywhere below a dataset's folder, that hold files of a kind.
 *
 * The Hugging Face hub has a folder for each configuration, and perhaps one in it for each split. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/data/files/listed.h"
#include "daemon/data/growing.h"
#include "proto/base/why.h"

struct below {
        const char **paths; /* of these folders, relative to the root, sorted; "": the root itself */
        size_t n;
        char other[256]; /* a file that is not of the kind and unusual beside a dataset; "": there is none */
        bool is_cut;     /* some folders were not looked into: too many, or too deep */
        struct growing memory;
};

/* Looks into folders up to four levels below the root, a thousand at most. Hidden ones are left out; links to folders
 * are followed if the root allows it. `is_alone`: ends at the first other file. Returns 0 or an errno with `why`, which
 * names the folder, but not the root. Blocks while folders are read. */
int below_find(int root_fd, bool (*is_taken)(const char *name), bool is_alone, struct below *ret_below,
               struct why *why);

/* Takes a struct of zeroes. */
void below_fini(struct below *below);
