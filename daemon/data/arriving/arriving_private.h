/* data/arriving/arriving_private.h: what arriving.c, which takes files in, and arriving_source.c, which answers, share. */
#pragma once

#include <pthread.h>

#include "daemon/base/work/crew.h"
#include "daemon/data/arriving/arriving.h"
#include "daemon/data/growth.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/source_type.h"

#define ARRIVING_TIMES_MAX 32u /* indices of a file, one after the other */

struct arrived_file {
        _Atomic(struct source *) source;        /* of what is there; NULL: nothing */
        struct source *all[ARRIVING_TIMES_MAX]; /* others may still read in the older ones */
        uint32_t n_all;
        uint64_t n_samples;
        uint64_t n_whole, n_due; /* of a file that is read through: bytes in the index, and when it is made again */
        bool is_whole;           /* then what is read through is all of it */
        bool is_over;            /* it is in an index as a whole, or has failed */
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
        struct indexing_origin origin; /* that of the spec, which is waited for */

        pthread_mutex_t lock; /* a leaf; of what follows */
        pthread_cond_t changed;
        bool has_first, is_open;
        struct why first_failed;
        uint64_t n_wanted; /* times that more was wanted */

        pthread_t threads[CREW_MAX];
        uint32_t n_threads;
        bool is_read_through;    /* by them */
        _Atomic uint64_t *taken; /* files at which a thread is: a bit each, and their numbers */
        size_t *numbers;
};

extern const struct source_type ARRIVING_TYPE;

/* Takes what the first index says. */
void arriving_describe(struct arriving *arriving, const struct source *first);

void arriving_stop_reading(struct arriving *arriving);
void arriving_hurry(struct arriving *arriving); /* more is wanted of some file */

/* Does the index of another file, or of more of one, have the same fields? */
bool arriving_has_same_fields(const struct arriving *arriving, const struct source *source, struct why *ret_why);
