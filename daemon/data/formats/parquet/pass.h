/* data/formats/parquet/pass.h: one pass over all row groups of a dataset, file by file.
 *
 * The dataset is opened first: its files are found, and the first one's schema decides what becomes of the columns. In
 * the other files they are found by their names, and of a column without a type the first file that has one decides.
 *
 * Several threads go through it (data/files/parted.h): each visits some row groups of a file for itself, in a part. The
 * parts are taken in order; what a part could not read is visited again, by the caller's thread. */
#pragma once

#include "daemon/data/files/shards.h"
#include "daemon/data/format.h"
#include "daemon/data/formats/parquet/parquet_columns.h"

struct parquet_pass {
        int root_fd;
        const struct files *files;
        const struct index_watch *watch; /* may be NULL */
        struct refusals *refusals;       /* NULL in a part */
        struct why *why;
        struct listed listed;
        struct parquet_footer first; /* of the first file; its schema is that of the dataset */
        struct parquet_columns columns;
        int64_t settled_ns;
        uint64_t n_rows;            /* that were visited, in all passes */
        const atomic_bool *is_over; /* of a part: nobody wants it any more; else NULL */
};

/* A row group that is visited. */
struct parquet_group {
        int fd;
        const struct parquet_footer *footer;
        const uint32_t *map;                /* of the elements of the first file (parquet_schema_map()) */
        const struct parquet_chunk *chunks; /* one for each leaf */
        uint64_t n_rows;
        uint64_t first_row; /* of the file */
};

/* Positive outcome of take(): the row groups are to be visited again. */
#define PARQUET_AGAIN 1

extern const struct shards_kind PARQUET_SHARDS;

struct parquet_visitor {
        void *userdata;
        /* A file begins. `status` is from before it was read. May be NULL. Returns 0 or an errno with `why`. */
        int (*file)(void *userdata, const char *name, const struct stat *status, struct why *why);
        /* A row group of it, which has rows. Returns 0 or an errno with `why`, which names the column, but not the file
         * or group. */
        int (*group)(void *userdata, const struct parquet_group *group, struct why *why);

        /* The same for a part: what it finds is kept for take(). In any thread. `part` is a pass of its own, with
         * columns of its own, and what was told to the visitor before the pass has not changed. NULL: no memory. All
         * three are NULL if the rows can only be visited one after the other. */
        struct parquet_visitor *(*make)(void *userdata, struct parquet_pass *part);
        /* All was visited: gives back what only reading needs, since parts wait to be taken. May be NULL. */
        void (*rest)(struct parquet_visitor *part);
        void (*free)(struct parquet_visitor *part);
        /* Adds what a part has found. Returns 0; PARQUET_AGAIN; or an errno with `why`. */
        int (*take)(void *userdata, struct parquet_visitor *part, struct why *why);
};

/* Fills in a struct of which only the first five members are set. `split` as in shards.h, `fields` as in
 * parquet_columns.h. Returns 0 or an errno with `why`. */
int parquet_pass_open(struct parquet_pass *pass, const char *split, const char *fields);

/* Shows the visitor all row groups. Returns 0 or an errno with `why`. Blocks until all is read, or it is cancelled. */
int parquet_pass_run(struct parquet_pass *pass, const struct parquet_visitor *visitor);

/* To be called by a visitor after every few thousand rows. Returns 0, or -ECANCELED with `why`. In a part it tells
 * nobody how far it is. */
int parquet_pass_look_up(struct parquet_pass *pass, uint64_t n_rows, struct why *why);

/* How many bytes of pages a visitor may have in memory. All parts together have a part of what the caller has: what is
 * too large for one of them is visited by the caller. */
uint64_t parquet_pass_page_bytes(const struct parquet_pass *pass);

/* The leaf of this group's file that is the leaf `idx_element` of the first file, which all columns name. Returns 0,
 * and COLUMN_NONE if the file does not have it; or -ENOTSUP with `why` if it is of another type there. */
int parquet_group_leaf(const struct parquet_group *group, uint32_t idx_element, uint32_t *ret_idx_element,
                       struct why *why);

/* Begins to read such a leaf of a group. Returns as parquet_reader_begin(). */
int parquet_group_begin(const struct parquet_group *group, uint32_t idx_element, struct parquet_reader *reader,
                        struct why *why);

/* Takes a struct whose other members are zeroes. */
void parquet_pass_fini(struct parquet_pass *pass);
