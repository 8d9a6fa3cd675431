/* ctl/number_values.h: the values of all numbers (base/number_rows.h) at one moment. Messages and metrics are made of
 * them. Main thread. */
#pragma once

#include "daemon/base/number_rows.h"
#include "daemon/ctl/server.h"
#include "proto/frame.h"
#include "proto/meter.h"

struct process_numbers {
        PROCESS_NUMBERS(NUMBER_VALUE)
};

struct node_numbers {
        NODE_NUMBERS(NUMBER_VALUE)
};

struct dataset_numbers {
        DATASET_NUMBERS(NUMBER_VALUE)
};

struct staging_numbers {
        STAGING_NUMBERS(NUMBER_VALUE)
};

struct job_numbers {
        JOB_NUMBERS(NUMBER_VALUE)
};

struct rank_numbers {
        RANK_NUMBERS(NUMBER_VALUE)
};

void number_values_of_process(const struct server *server, struct process_numbers *ret_numbers);
/* The cache counts by itself: its numbers become those of the node's counters. Zeroes while nothing lies elsewhere.
 * Main thread. */
void number_values_take_cache(struct server *server, struct cache_counts *ret_counts);

void number_values_of_node(struct server *server, struct node_numbers *ret_numbers);
void number_values_of_dataset(struct catalog_entry *entry, struct dataset_numbers *ret_numbers);

/* All NUMBER_UNKNOWN if no staging of it was heard of. */
void number_values_of_staging(const struct catalog_entry *entry, struct staging_numbers *ret_numbers);

/* The job's own, without what its ranks know: n_ranks, is_on_hold. */
void number_values_of_job(struct job *job, struct job_numbers *ret_numbers,
                          struct stage_total ret_stages[static N_STAGES]);

/* With what its client says. */
void number_values_of_rank(const struct feed *feed, uint64_t now_ns, struct rank_numbers *ret_numbers,
                           struct dlp_meter *ret_meter);

/* Fills an initialised message. */
void number_values_tell_node(struct server *server, Dlp__Node *message);

/* ---- numbers in messages --------------------------------------------------------------------------------------- */

#define NUMBER_LIST_MAX 8u

/* Those that have no field of their own. */
struct number_list {
        bool is_brief; /* unit and help are left out: another list of the reply has them */
        size_t n;
        Dlp__Fact facts[NUMBER_LIST_MAX];
        Dlp__Fact *pointers[NUMBER_LIST_MAX];
        char values[NUMBER_LIST_MAX][24];
};

/* Rows of a scope that are sent in such a list. */
#define NUMBER_LISTS(name, kind, unit, where, metric, help) +(NUMBER_##where >= NUMBER_LISTED)
_Static_assert((0 DATASET_NUMBERS(NUMBER_LISTS)) <= NUMBER_LIST_MAX, "NUMBER_LIST_MAX is too small for datasets");
_Static_assert((0 JOB_NUMBERS(NUMBER_LISTS)) <= NUMBER_LIST_MAX, "NUMBER_LIST_MAX is too small for jobs");
_Static_assert((0 RANK_NUMBERS(NUMBER_LISTS)) <= NUMBER_LIST_MAX, "NUMBER_LIST_MAX is too small for ranks");
_Static_assert((0 NODE_STATE(NUMBER_LISTS)) == 0, "what the daemon lists is a counter: the status sends those");

/* Takes NULL. */
void number_list_add(struct number_list *list, const char *name, uint64_t value, const char *unit, const char *help,
                     bool is_watched);

/* For rows: sends a value of `numbers` as its row says, in a field of `message` or in `list`, which are variables of
 * the caller. */
#define NUMBER_TELL(name, kind, unit, where, metric, help) NUMBER_TELL_##where(name, unit, help)
#define NUMBER_TELL_SCRAPED(name, unit, help)
#define NUMBER_TELL_FIELD(name, unit, help)                                                                            \
        if (numbers->name != NUMBER_UNKNOWN)                                                                           \
                message->name = (__typeof__(message->name))numbers->name;
#define NUMBER_TELL_LISTED(name, unit, help)  number_list_add(list, #name, numbers->name, unit, help, false);
#define NUMBER_TELL_WATCHED(name, unit, help) number_list_add(list, #name, numbers->name, unit, help, true);
