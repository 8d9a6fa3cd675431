/* data/files/together.h: the files of a dataset, looked at by several threads.
 *
 * An index pass reads little of each file and waits for most of it, above all on file systems of a network. What is
 * found must not depend on who was faster: each file's result has a place of its own, and of several errors that of the
 * first file counts. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/data/files/seen.h"
#include "daemon/data/format.h"
#include "proto/base/why.h"

#define TOGETHER_MAX 8u /* threads */

struct together {
        size_t n_files;
        /* Looks at one file, in thread `idx_thread` (below together_threads()). Files are begun in their order, each
         * once. Returns 0 or an errno with `why`. */
        int (*look)(void *userdata, uint32_t idx_thread, size_t file, struct why *why);
        /* How many samples were found until now, in all threads; called meanwhile. */
        uint64_t (*count)(void *userdata);
        const struct seen *seen; /* of look(), told meanwhile; may be NULL */
        void *userdata;
        const struct index_watch *watch; /* may be NULL; asked and told on the calling thread */
};

/* The number of threads that look at n_files files: 1 to TOGETHER_MAX. */
uint32_t together_threads(size_t n_files);

/* Looks at all files, and after an error or a cancel at those that were begun. Returns 0; -ECANCELED with a `why` that
 * lacks the dataset's name; or the error of the first file that has one. Blocks as look() does. */
int together_run(const struct together *together, struct why *why);
