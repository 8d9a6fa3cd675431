/* top/shown.h: which jobs and ranks are shown, with which columns, and in which sequence. Pure functions. */
#pragma once

#include "client/dlctl/top/rates.h"
#include "client/dlctl/top/top_amounts.h"

#define FILTER_MAX 64u /* bytes with NUL */

enum column {
        COLUMN_JOB,
        COLUMN_USER,
        COLUMN_DATASET,
        COLUMN_RANKS,
        COLUMN_SAMPLES,
        COLUMN_WAIT,
        COLUMN_READY,
        COLUMN_SLOTS,
        COLUMN_WORKERS,
        COLUMN_READ,
        COLUMN_RING,
        COLUMN_DAMAGED,
        COLUMN_STATUS,
        N_COLUMNS,
};

/* Texts begin with the first letter, numbers with the largest. */
struct sorting {
        enum column column;
        bool inverted;
};

struct top_column {
        const char *name;     /* as --sort has it; NULL: nobody sorts by it */
        const char *title;    /* "WAIT%" */
        const char *help;     /* NULL: it needs none */
        unsigned least, most; /* width */
        unsigned importance;  /* the first are there in a narrow terminal, too */
        bool right;
        bool has_ranks;                                           /* ranks have it as well */
        enum top_rate rate;                                       /* that is sorted by, unless `name` is a text, */
        const char *(*print)(char text[AMOUNT_MAX], double rate); /* and shown by this; NULL: something else is */
        bool is_rounded; /* a tenth of a percent that is not shown does not make lines jump */
};

extern const struct top_column TOP_COLUMNS[N_COLUMNS];

/* The column that --sort calls "wait". Returns 0 or -EINVAL. */
int column_from_name(const char *name, enum column *ret_column);

/* What identifies a job or rank from one look to the next. */
struct item_key {
        uint64_t job;  /* digest of user and name; 0: none */
        uint32_t rank; /* + 1; 0: the job itself */
};

/* A line of the table: a job, or one of its ranks. */
struct item {
        const struct job_rates *job;
        const struct rank_rates *rank; /* NULL: the job itself */
        bool is_last;                  /* of its job's ranks */
        struct item_key key;
};

struct items {
        struct item *items;
        size_t n;
        size_t n_jobs; /* of them */
};

struct item_key key_of(const struct job_rates *job, const struct rank_rates *rank);
bool key_equal(struct item_key a, struct item_key b);

/* Whether the ranks of a job are shown. */
typedef bool expands_fn(const void *arg, struct item_key job);

/* Jobs whose name, user or dataset has `filter` in it (letters of either case; "": all). */
void items_make(const struct rates *rates, struct sorting sorting, const char *filter, expands_fn *expands,
                const void *arg, struct items *ret_items);
void items_free(struct items *items);

/* Has the job `text` in its name, user or dataset, as a filter finds it? */
bool item_has(const struct item *item, const char *text);
