/* proto/late/late.h: libraries that are loaded when they are first needed.
 *
 * What a program is linked to is loaded at each of its starts, with all that those libraries need themselves: libcurl
 * alone brings 30 more. A program that only serves a dataset of this machine needs none of them. So they are loaded
 * with dlopen(), and each has
 *
 *     NAME_functions.h  a row for each function that we call, and a struct of pointers to them
 *     NAME_late.h       for callers: the functions under their own names, and NAME_load(), which comes first
 *     NAME_late.c       loads the library
 *     NAME_linked.c     in its place: for programs that are linked to the library (the wheel's, the one of faults)
 *
 * It is for the daemon and dlctl, and not for the client's library. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "proto/base/why.h"

/* What a row becomes: a member of the struct, the function's name, its address. */
#define LATE_MEMBER(function)  __typeof__(function) *function;
#define LATE_NAME(function)    #function,
#define LATE_ADDRESS(function) .function = function,

/* A static one, with PTHREAD_MUTEX_INITIALIZER. */
struct late_library {
        const char *file;         /* "libcurl.so.4" */
        const char *package;      /* Debian's: "libcurl4" */
        const char *const *names; /* in the order of the members; ended by NULL */
        void *functions;          /* the struct: pointers and nothing else */
        pthread_mutex_t lock;     /* a leaf */
        _Atomic bool is_loaded;
};

/* Fills the struct, once; the library then stays. Returns 0; -ELIBACC with `why` (which may be NULL) if it cannot be
 * loaded, and the next call tries again. Any thread; the first one waits for the file. */
int late_load(struct late_library *library, struct why *why);
