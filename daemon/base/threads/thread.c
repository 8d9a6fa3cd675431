#include "daemon/base/threads/thread.h"

#include <assert.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

static void fill_blocked(sigset_t *ret_set) {
        static const int OF_THE_THREAD[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS };

        sigfillset(ret_set);
        for (size_t i = 0; i < sizeof(OF_THE_THREAD) / sizeof(OF_THE_THREAD[0]); i++)
                sigdelset(ret_set, OF_THE_THREAD[i]);
}

int thread_start(pthread_t *ret_thread, const char *name, void *(*main)(void *), void *argument) {
        sigset_t blocked, before;
        pthread_t thread;
        int r;

        assert(strlen(name) <= THREAD_NAME_MAX);

        /* A thread inherits its signal mask, so the mask is set around the creation: there is no moment in which the
         * kernel could choose the new thread for a signal. */
        fill_blocked(&blocked);
        pthread_sigmask(SIG_BLOCK, &blocked, &before);
        r = pthread_create(&thread, NULL, main, argument);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r != 0)
                return -r;

        pthread_setname_np(thread, name); /* fails only if the thread has already ended */
        *ret_thread = thread;
        return 0;
}

int thread_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns) {
        struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000u),
                                  .tv_nsec = (long)(until_ns % 1000000000u) };

        return pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &until);
}

void thread_detach(pthread_t thread) {
        int r = pthread_detach(thread);

        assert(r == 0);
        (void)r;
}

void thread_join(pthread_t thread) {
        int r = pthread_join(thread, NULL);

        assert(r == 0);
        (void)r;
}
