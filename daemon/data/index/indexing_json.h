/* data/index/indexing_json.h: a text of JSON that a dataset has, as a tree of cJSON.
 *
 * Of 64 MiB of text come two GiB of tree, and it takes seconds. So it is paid for while it grows, and ends once the
 * index is not wanted any more (indexing.h). */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

#include "daemon/data/index/indexing.h"

struct indexing_json {
        cJSON *root; /* NULL: the text is not JSON */
        struct indexing *payer;
        uint64_t n_paid, n_used;
        const char *name;
        int error; /* of its memory */
};

/* Reads a text of n_bytes, `name` is what messages call it. Returns 0, -ENOMEM or -ECANCELED. */
int indexing_json_read(struct indexing_json *json, const char *name, const char *text, size_t n_bytes);

/* Takes a struct of zeroes. */
void indexing_json_fini(struct indexing_json *json);
