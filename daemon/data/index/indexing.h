/* data/index/indexing.h: what the threads that make one index have in common: who pays for their memory and time, and
 * whether the index is still wanted.
 *
 * A format reads on several threads and through many layers, none of which knows for whom it works. So each thread
 * joins the indexing. Then its arrays (data/growing.h) are paid for, and its reads end once the index is not wanted any
 * more, even in the middle of a long record. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/budget.h"
#include "daemon/base/work/errand.h"
#include "proto/base/why.h"

/* Files that are filled as they are read, because the dataset lies elsewhere (store/cache/cache.h): they have their
 * length, and bytes only where they were asked for. */
struct indexing_origin {
        /* As disk_read_at(), and -ECANCELED once *cancel is true (may be NULL). */
        int (*read)(void *userdata, int fd, void *into, size_t n_bytes, uint64_t offset, const atomic_bool *cancel);

        /* A number of the file's content that needs no read of it. False: it is none of these files. */
        bool (*mark)(void *userdata, int fd, uint64_t *ret_mark);

        /* Does it answer? 0 or an errno with `why`. Blocks, until *cancel is true (may be NULL). */
        int (*look)(void *userdata, const atomic_bool *cancel, struct why *why);

        /* A dataset that is open holds it. What looks whether the dataset can be read again may outlive its jobs. */
        void (*hold)(void *userdata);
        void (*release)(void *userdata);

        const char *digest; /* of the content of all files */
        void *userdata;
};

/* A file that is looked at as if it ended earlier: the rest of it is not there yet. */
struct indexing_cut {
        const char *name; /* relative to the root; NULL: no file is */
        uint64_t n_bytes; /* that it has, */
        uint32_t n_zeros; /* and zeros after them: then no other file may be read */
};

struct indexing {
        const struct indexing_origin *origin; /* NULL: files are what they are */
        struct budget *budget;                /* in which arrays are counted until they are freed; NULL: nowhere */
        struct errands *errands;              /* whose errand it is; NULL: nobody's */
        const atomic_bool *cancel;            /* true: it is not wanted any more; may be NULL */
        struct indexing_cut cut;
        _Atomic uint64_t n_bytes;  /* that are counted now; at most three quarters of what others leave of the budget */
        _Atomic uint64_t n_looks;  /* at whether it is wanted; counted for tests alone */
        _Atomic uint32_t n_hidden; /* files that were passed over because they are hidden */
        atomic_flag is_refusing;
        struct why refusal; /* of the first array that could not grow; once all threads have ended */
};

/* For tests: the index is not wanted any more from this look on, the first one is 1. 0: `cancel` decides. */
struct indexing_limits {
        uint64_t n_looks;
};

extern struct indexing_limits INDEXING_LIMITS;

/* The calling thread works for this index, which outlives all that is begun now, until it joins another one. NULL: for
 * none any more; a thread has to say so before it ends. */
void indexing_join(struct indexing *indexing);

/* That of the calling thread, for others that do a part of its work; NULL: none. */
struct indexing *indexing_joined(void);

/* The calling thread works for an index that is not wanted any more. Quick. */
bool indexing_is_over(void);

/* A hidden file was passed over that would be a part of the dataset otherwise, such as the "._x.jpg" that macOS leaves
 * beside x.jpg: it is counted for the index of the calling thread. */
void indexing_count_hidden(void);

/* The same for a name that a format has not taken, if it would without the dot before it. */
void indexing_pass_over(const char *name, bool (*is_taken)(const char *name));

/* As disk_read_at(), in pieces; -ECANCELED once the index is not wanted any more. */
int indexing_read_at(int fd, void *into, size_t n_bytes, uint64_t offset);

/* The length of a file that was opened, as far as this index is concerned. */
uint64_t indexing_length(const char *name, uint64_t n_bytes);

/* As pread() from the beginning of a regular file: how many bytes there were, or an errno. */
ssize_t indexing_read_head(int fd, void *into, size_t n_bytes);

/* Where the files of the calling thread's index are filled from; NULL: they are what they are. */
const struct indexing_origin *indexing_origin(void);

/* Counts n_bytes more, or -ENOMEM. NULL as the first argument: nothing is counted, here and below. */
int indexing_pay(struct indexing *indexing, uint64_t n_bytes);

/* The same for something that the refusal names: "state.json as JSON". */
int indexing_pay_for(struct indexing *indexing, uint64_t n_bytes, const char *what);

void indexing_pay_back(struct indexing *indexing, uint64_t n_bytes);
