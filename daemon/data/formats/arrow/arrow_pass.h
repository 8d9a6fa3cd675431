/* data/formats/arrow/arrow_pass.h: one pass over all rows of a dataset, file by file and a few thousand rows at a time.
 *
 * The dataset is opened first: its files are found, and the first one's schema decides what becomes of the columns. In
 * the other files they are found by their names, and of a column without a type the first file that has one decides.
 *
 * Several threads go through it (data/files/parted.h): each visits a file for itself, in a part. The parts are taken in
 * order; a file that a part could not read is visited again, by the caller's thread. */
#pragma once

#include "daemon/data/format.h"
#include "daemon/data/formats/arrow/arrow_columns.h"
#include "daemon/data/formats/arrow/arrow_folder.h"
#include "daemon/data/formats/arrow/host.h"
#include "daemon/data/formats/arrow/table/ipc_table.h"

struct arrow_pass {
        int root_fd;
        const struct files *files;
        const struct index_watch *watch; /* may be NULL */
        struct refusals *refusals;       /* NULL in a part */
        struct why *why;
        const struct arrow_host *host; /* NULL: the files are Arrow files */
        struct arrow_folder folder;
        struct arrow_schema schema; /* of the dataset */
        struct arrow_columns columns;
        int64_t settled_ns;
        const atomic_bool *is_over; /* of a part: nobody wants it any more; else NULL */
};

/* Positive outcome of take(): the file is to be visited again. */
#define ARROW_AGAIN 1

struct arrow_visitor {
        void *userdata;
        /* A file begins. `status` is from before it was read. May be NULL. Returns 0 or an errno with `why`. */
        int (*file)(void *userdata, const char *name, const struct stat *status, struct why *why);
        /* Some rows of it; NULL: only the schemas of the files are looked at. Returns 0 or an errno with `why`, which
         * names the column, but not the file or batch. */
        int (*rows)(void *userdata, const struct arrow_rows *rows, struct why *why);

        /* The same for a part: what it finds is kept for take(). In any thread. `part` is a pass of its own, with
         * columns of its own, and what was told to the visitor before the pass has not changed. NULL: no memory. All
         * three are NULL if the rows can only be visited one after the other. */
        struct arrow_visitor *(*make)(void *userdata, struct arrow_pass *part);
        /* All was visited: gives back what only reading needs, since parts wait to be taken. May be NULL. */
        void (*rest)(struct arrow_visitor *part);
        void (*free)(struct arrow_visitor *part);
        /* Adds what a part has found in a file, which was like `status` before. Returns 0; ARROW_AGAIN, and nothing is
         * added; or an errno with `why`, which does not name the file. */
        int (*take)(void *userdata, struct arrow_visitor *part, const char *name, const struct stat *status,
                    struct why *why);
};

/* Fills in a struct of which only the first six members are set. `split` as in arrow_folder.h, `fields` as in
 * arrow_columns.h. Returns 0 or an errno with `why`. */
int arrow_pass_open(struct arrow_pass *pass, const char *split, const char *fields);

/* Shows the visitor all rows. Returns 0 or an errno with `why`. Blocks until all files are read, or it is cancelled. */
int arrow_pass_run(struct arrow_pass *pass, const struct arrow_visitor *visitor);

/* Takes a struct whose other members are zeroes. */
void arrow_pass_fini(struct arrow_pass *pass);
