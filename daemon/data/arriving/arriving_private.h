/* data/arriving/arriving_private.h: what arriving.c, which takes files in, and arriving_source.c, which answers, share. */
#pragma once

#include <pthread.h>

#include "daemon/data/arriving/arriving.h"
#include "daemon/data/growth.h"
#include "daemon/data/source_type.h"

#define ARRIVING_TIMES_MAX 32u /* indices of a file, one after the other */

struct arrived_file {
        _Atomic(struct source *) source;        /* of what is there; NULL: nothing */
        struct source *all[ARRIVING_TIMES_MAX]; /* others may still read in the older ones */
        uint32_t n_all;
        uint64_t n_samples;
        bool is_over; /* it is whole, or has failed */
};

struct arriving {
        struct source source; /* the first member: callers have a pointer to it */
        struct arriving_spec spec;
        char digest[65];
        int root_fd; /* the dataset's */
        struct format_options options;
        struct budget *budget;
        struct growth *growth;
        struct arrived_file *files;
        uint64_t limits[SCHEMA_FIELDS_MAX]; /* bytes of a stored field */
        uint64_t means[SCHEMA_FIELDS_MAX];
        struct why too_long;
        atomic_bool is_over;

        pthread_mutex_t lock; /* a leaf; of what follows */
        pthread_cond_t changed;
        bool has_first, is_open;
        struct why first_failed;
};

extern const struct source_type ARRIVING_TYPE;

/* Takes what the first index says. */
void arriving_describe(struct arriving *arriving, const struct source *first);

/* Does the index of another file, or of more of one, have the same fields? */
bool arriving_has_same_fields(const struct arriving *arriving, const struct source *source, struct why *ret_why);
