/* data/files/below.h: which folders somewhere below a dataset's folder hold
 * files of a kind.
 *
 * The Hugging Face hub has a folder for each configuration, and perhaps one in
 * it for each split. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/data/files/listed.h"
#include "daemon/data/growing.h"
#include "proto/base/why.h"

struct below {
        const char **paths; /* of these folders, relative to the root, sorted; "": the
                               root itself */
        size_t n;
        char other[256]; /* some file that is neither of the kind nor one that lies
                            beside many a dataset; "": none */
        bool is_cut;     /* some folders were not looked into: too many, or too deep */
        struct growing memory;
};

/* Looks into folders up to four levels below the root, a thousand at most;
 * hidden ones are left out, and links to folders followed as the root says.
 * `is_alone`: ends at the first other file. Returns 0 or an errno with `why`,
 * which names the folder, but not the root. Blocks while folders are read. */
int below_find(int root_fd, bool (*is_taken)(const char *name), bool is_alone, struct below *ret_below,
               struct why *why);

/* Takes a struct of zeroes. */
void below_fini(struct below *below);
