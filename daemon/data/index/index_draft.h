/* data/index/index_draft.h: an index file under a temporary name, until it is complete and is renamed to its place. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "daemon/base/budget.h"
#include "daemon/data/index/index_builder.h"
#include "daemon/data/source.h"
#include "proto/base/why.h"

#define INDEX_DRAFT_MARK   ".new-" /* between the file's name and six random characters */
#define INDEX_DRAFT_RANDOM 6u

struct index_draft {
        int fd; /* open for reading and writing; -1: none */
        char path[PATH_MAX];
        const char *place; /* its final path */
};

/* Makes an empty file beside `place`, which must outlive the draft, and `index_dir` if only its last component is
 * missing. Returns 0 or an errno with `why`. */
int index_draft_make(const char *index_dir, const char *place, struct index_draft *ret_draft, struct why *why);

/* Renames it to its place; all users may read it, and only we may write it. `fd` stays open. Returns 0 or an errno with
 * `why`. */
int index_draft_place(struct index_draft *draft, struct why *why);

/* Removes the file if it was not placed, and closes it. Does nothing for a draft that was not made. */
void index_draft_drop(struct index_draft *draft);

/* Is it the name of a draft of a file with this ending? */
bool index_draft_is_name(const char *name, const char *ending);

/* An index that is written nowhere but into memory, opened as index_open() does. `name` is only for messages. */
int index_in_memory(struct index_builder *builder, const char *name, struct budget *budget, struct source **ret_source,
                    struct why *why);
