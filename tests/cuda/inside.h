/* cuda/inside.h: what the files of the stand-in share.
 *
 * One lock guards everything, and one condition tells that something has moved on. An entry point holds the lock from
 * ENTER() until it returns; work runs on its stream's thread without it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/cuda/kernels/cpu.h"
#include "proto/base/cleanup.h"
#include "tests/cuda/abi.h"
#include "tests/cuda/calls.h"
#include "tests/cuda/standin.h"

#define MAX_DEVICES  8
#define MAX_FAILURES 16
#define MAX_NAME     64

/* ---- calls ---------------------------------------------------------------------------------------------------- */

#define CALL_NUMBER(name, symbol, needs, since) CALL_##name,
enum call {
        CUDA_CALLS(CALL_NUMBER) N_CALLS
};

enum needs {
        NOTHING,
        LOADED,
        STARTED,
        CURRENT
};

struct call_type {
        const char *name, *symbol;
        void (*function)(void);
        enum needs needs;
        int since; /* version */
};

extern const struct call_type CALL_TYPES[N_CALLS];

/* Begins an entry point: takes the lock and counts, or returns the error that the call has to end with. */
#define ENTER(name)                                                                                                    \
        _cleanup_(call_end) struct entered entered = {};                                                               \
        do {                                                                                                           \
                int r_entered = call_begin(CALL_##name, &entered);                                                     \
                if (r_entered != CUDA_SUCCESS)                                                                         \
                        return r_entered;                                                                              \
        } while (0)

struct entered {
        const char *name;
        struct context *context; /* current one; NULL: none */
        bool locked;
};

int call_begin(enum call call, struct entered *ret_entered);
void call_end(struct entered *entered);

/* How a call ends that has waited: work may have failed meanwhile. */
int call_settled(void);

/* While a host function runs, calls of its thread return CUDA_ERROR_NOT_PERMITTED. */
void call_from_host_function(bool runs);

/* ---- settings and the ledger ----------------------------------------------------------------------------------- */

struct failure {
        char name[MAX_NAME];
        uint64_t occurrence;
        int code;
        bool sticky;
};

struct settings {
        int n_devices, version, major, minor;
        uint64_t memory_bytes, delay_us, seed;
        bool read_only;
        char report[4096];
        struct failure failures[MAX_FAILURES];
        uint32_t n_failures;
};

/* Everything that is not an object. All under the lock, except `forked`. */
struct ledger {
        struct settings settings;
        struct dlt_cuda_counts counts;
        uint64_t n_calls[N_CALLS];
        bool started, sticky;
        bool ended; /* the process is about to */
        atomic_bool forked;
};

extern struct ledger the;
extern pthread_mutex_t the_lock;
extern pthread_cond_t the_condition; /* something is done, or there is something to do */

void settings_read(struct settings *ret_settings);

/* Counts what a client must not do, and keeps the text of the first. Under the lock. */
__attribute__((format(printf, 1, 2))) void violation(const char *format, ...);

void report_write(void);

/* ---- objects: what handles stand for ----------------------------------------------------------------------------- */

enum kind {
        CONTEXT,
        STREAM,
        EVENT,
        MODULE,
        FUNCTION,
        N_KINDS
};

/* Begins every object. Objects stay in memory until the process ends, so that a handle is never used twice and work may
 * point to streams and contexts that were destroyed. */
struct object {
        enum kind kind;
        bool alive;
        bool hidden; /* neither counted nor told of as left */
        void *handle;
        struct context *context; /* that it belongs to; a context's is itself */
};

void *must_alloc(size_t n_bytes);

/* An object of `n_bytes`, alive and counted. */
void *object_new(enum kind kind, size_t n_bytes, struct context *context);

/* The living object of a handle; NULL, with a violation counted, if there is none. */
void *object_find(const char *call, void *handle, enum kind kind);
void object_destroy(struct object *object);
void object_hide(struct object *object);

/* Destroys what belongs to a context, but not the context. Returns how many there were. */
uint64_t objects_destroy(struct context *context);

/* ---- contexts --------------------------------------------------------------------------------------------------- */

struct context {
        struct object object;
        int device;
        uint32_t n_references;
        uint64_t bytes_allocated;
        struct stream *legacy;
};

bool device_exists(int device);
struct context *context_current(void);
void contexts_restart(void);

/* ---- streams ---------------------------------------------------------------------------------------------------- */

/* A place in a stream's work: passed once the stream has done it. */
struct moment {
        struct stream *stream; /* NULL: long ago */
        uint64_t sequence;
};

struct work;

struct stream {
        struct object object;
        pthread_t thread;
        bool blocking; /* synchronises with the legacy stream */
        bool closing;  /* its thread ends once all is done */
        uint64_t n_queued, n_done;
        uint64_t random;
        struct work *first, **end;
        struct stream *next; /* of all streams whose thread runs */
};

struct event {
        struct object object;
        struct moment recorded; /* latest */
        bool is_timed;
        uint64_t at_ns; /* when that place was passed, if it is timed; written by its stream's thread before it is */
};

/* A stream with its thread. `blocking`: waits for the legacy stream, as that one does for it. */
struct stream *stream_new(struct context *context, bool blocking);

/* What work does, on its stream's thread. After a sticky error it must not execute, only tidy up. Without the lock. */
typedef void (*work_run)(struct stream *stream, void *argument, bool executes);

/* Appends work, which begins after `after`. `argument` is freed after it. Under the lock. */
struct moment stream_push(struct stream *stream, work_run run, void *argument, struct moment after);

/* The stream of a handle, NULL and the other two special ones included; NULL, with a violation counted. */
struct stream *stream_find(const struct entered *entered, void *handle);

bool moment_passed(struct moment moment);
void moment_wait(struct moment moment);      /* gives the lock up meanwhile */
void context_drain(struct context *context); /* waits for all that is queued in it by now; NULL: in all contexts */
void streams_end(struct context *context);   /* their threads end; NULL: of all contexts */
void stream_pause(struct stream *stream, uint64_t longest_us); /* a random time; without the lock */

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* A piece of device memory. */
struct block {
        uint64_t at, n_bytes; /* as asked for */
        uint64_t pages, n_page_bytes;
        struct context *context;
        bool freeing;    /* cuMemFreeAsync() is queued */
        uint32_t n_busy; /* copies that touch it now */
        struct block *next;
};

int block_new(struct context *context, uint64_t n_bytes, struct block **ret_block);
void block_free(struct block *block); /* waits for the copies that touch it */
bool in_arena(uint64_t address);

/* The block that holds all of the range, or NULL. */
struct block *block_holding(uint64_t address, uint64_t n_bytes);
uint64_t blocks_free(struct context *context);

/* Memory of the process that copies may touch late. */
struct pinned {
        uint64_t at, n_bytes;
        struct context *context;
        bool is_own;       /* from cuMemHostAlloc() */
        bool read_only;    /* flag 8 */
        uint32_t n_queued; /* copies that will touch it */
        struct pinned *next;
};

/* The one that holds all of the range; NULL if there is none. `ret_overlaps`: does any hold a part? */
struct pinned *pinned_holding(uint64_t address, uint64_t n_bytes, bool *ret_overlaps);
uint64_t pinned_free(struct context *context);

/* Reads or writes memory of the process that may be unmapped, or be written by others meanwhile. False if it is
 * unmapped. */
bool host_read(void *to, uint64_t from, uint64_t n_bytes);
bool host_write(uint64_t to, const void *from, uint64_t n_bytes);
