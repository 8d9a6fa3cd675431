/* tests/faults/points.h: the points at which something may fail, counted and named.
 *
 * Every call of calls.h that product code makes passes fault_point(). A point is (site, occurrence): the site is the
 * call with the last few frames of product code above it, the occurrence counts how often that site was passed while
 * points were armed. A site means the same in every run of one build, also where threads make the sequence of all calls
 * vary. The state lies in shared memory, so the runner reads what a child counted, and a fork() of the client goes on
 * counting. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SITES_MAX   8192u
#define SITE_DEPTH  4u /* frames that tell two sites apart */
#define FAULT_SHORT -1 /* among a call's errnos: it does half of what was asked for */

struct site {
        _Atomic uint64_t hash; /* 0: empty */
        _Atomic uint32_t n;    /* times passed */
        const char *call;
        uint32_t n_errnos;
        uintptr_t frames[SITE_DEPTH]; /* return addresses, innermost first; 0: none */
};

#define POINTS_FD 200 /* at which processes that the daemon starts find `points` */

struct points {
        uintptr_t base; /* where the runner's program lies: addresses of sites are as there */

        /* What is asked for. */
        uint64_t target;     /* site; 0: only count */
        uint32_t occurrence; /* 1, 2, ... */
        uint32_t idx_errno;  /* of the call's errnos */
        bool from_then_on;   /* everything that comes after fails too */

        /* What was seen. */
        _Atomic bool armed;
        _Atomic bool hit;
        _Atomic uint64_t hit_ns; /* when, CLOCK_MONOTONIC */
        _Atomic uint64_t n_failed;
        _Atomic uint64_t n_unstored; /* sites that had no place */
        struct site sites[SITES_MAX];
};

/* NULL: nothing is counted. Set before threads start. */
extern struct points *points;

/* Threads inherit it from who starts them. What such a thread calls is not counted. */
extern _Thread_local bool points_exempt;

/* Looks up which libraries' allocations count. Once, before anything else. */
void points_begin(void);

/* Where this program lies, after points_begin(). */
uintptr_t points_base(void);

/* The process has just been started by one that has points: it counts on in them. */
void points_join(void);

void points_arm(void);
void points_disarm(void);

/* Did it happen that the point was reached? */
bool points_hit(void);

/* Returns 0: do the call; else what it fails with (an errno, or FAULT_SHORT). `address` and `frame` are
 * __builtin_return_address(0) and __builtin_frame_address(0) of the wrapper. */
int fault_point(const char *call, const int *errnos, uint32_t n_errnos, const void *address, const void *frame);

/* The same from a function of ours that is called by a library whose own calls are not counted, and returns to
 * `address` there: the site is the code of ours that called the library. */
int fault_point_below(const char *call, const int *errnos, uint32_t n_errnos, const void *address);

/* Is it code of ours, or of a library that is counted? Its name, "" for ours, NULL for neither. */
const char *points_library(uintptr_t address);

/* The frame's address as it is in the file. */
uintptr_t points_relative(uintptr_t address);
