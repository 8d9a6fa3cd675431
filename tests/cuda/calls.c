/* cuda/calls.c: what every call begins with: is it allowed here, is it counted, is it to fail? */
#include <string.h>

#include "tests/cuda/inside.h"

#define CALL_TYPE(name, symbol, needs, since) [CALL_##name] = { #name, #symbol, (void (*)(void))symbol, needs, since },

const struct call_type CALL_TYPES[N_CALLS] = { CUDA_CALLS(CALL_TYPE) };

struct ledger the;
pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t the_condition = PTHREAD_COND_INITIALIZER;

static _Thread_local bool in_host_function;

void call_from_host_function(bool runs) {
        in_host_function = runs;
}

static int (*trap)(const char *name);

void dlt_cuda_set_trap(int (*wanted)(const char *name)) {
        pthread_mutex_lock(&the_lock);
        trap = wanted;
        pthread_mutex_unlock(&the_lock);
}

/* What the trap and DLT_CUDA_FAIL say of this call. */
static int wanted_failure(enum call call) {
        const struct call_type *type = &CALL_TYPES[call];
        int trapped = trap ? trap(type->name) : CUDA_SUCCESS;

        if (trapped & DLT_CUDA_STICKY)
                the.sticky = true;
        if (trapped != CUDA_SUCCESS)
                return trapped & ~DLT_CUDA_STICKY;
        for (uint32_t i = 0; i < the.settings.n_failures; i++) {
                const struct failure *failure = &the.settings.failures[i];

                if (failure->occurrence != the.n_calls[call] ||
                    (strcmp(failure->name, type->name) != 0 && strcmp(failure->name, type->symbol) != 0))
                        continue;
                the.counts.n_failed++;
                if (failure->sticky)
                        the.sticky = true;
                return failure->code;
        }
        return CUDA_SUCCESS;
}

static int needed(const struct call_type *type, struct entered *entered) {
        if (type->needs == NOTHING)
                return CUDA_SUCCESS;
        if (in_host_function) {
                violation("%s was called by a host function", type->name);
                return CUDA_ERROR_NOT_PERMITTED;
        }
        if (the.ended)
                return CUDA_ERROR_DEINITIALIZED;
        if (the.sticky)
                return CUDA_ERROR_ILLEGAL_ADDRESS;
        if (type->needs >= STARTED && !the.started)
                return CUDA_ERROR_NOT_INITIALIZED;
        if (type->needs == CURRENT && !entered->context)
                return CUDA_ERROR_INVALID_CONTEXT;
        if (type->needs == CURRENT && !entered->context->object.alive)
                return CUDA_ERROR_CONTEXT_IS_DESTROYED; /* its last reference was released */
        return CUDA_SUCCESS;
}

int call_begin(enum call call, struct entered *ret_entered) {
        const struct call_type *type = &CALL_TYPES[call];
        bool was_sticky;
        int r, wanted;

        if (atomic_load(&the.forked) && type->needs != NOTHING)
                return CUDA_ERROR_NOT_INITIALIZED;
        pthread_mutex_lock(&the_lock);
        ret_entered->name = type->name;
        ret_entered->locked = true;
        ret_entered->context = context_current();
        the.counts.n_calls++;
        the.n_calls[call]++;
        was_sticky = the.sticky;
        wanted = wanted_failure(call);
        r = was_sticky || wanted == CUDA_SUCCESS ? needed(type, ret_entered) : wanted;
        if (r != CUDA_SUCCESS)
                call_end(ret_entered);
        return r;
}

void call_end(struct entered *entered) {
        if (!entered->locked)
                return;
        entered->locked = false;
        pthread_mutex_unlock(&the_lock);
}

int call_settled(void) {
        return the.sticky ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

/* ---- forks ------------------------------------------------------------------------------------------------------ */

static void before_fork(void) {
        pthread_mutex_lock(&the_lock);
}

static void after_fork(void) {
        pthread_mutex_unlock(&the_lock);
}

/* The driver's state does not survive a fork: its threads are gone, and so is the device's mapping. A child of a
 * process that has not called cuInit() may begin by itself. */
static void after_fork_in_child(void) {
        atomic_store(&the.forked, the.started);
        pthread_mutex_unlock(&the_lock);
}

__attribute__((constructor)) static void begin(void) {
        settings_read(&the.settings);
        pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* Work that is queued when a process ends is not executed: what it reads may be gone already. */
__attribute__((destructor)) static void end(void) {
        pthread_mutex_lock(&the_lock);
        if (!atomic_load(&the.forked))
                report_write();
        the.ended = true;
        pthread_mutex_unlock(&the_lock);
}
