/* base/threads/thread.h: threads that have a name and leave signals to the main thread. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#define THREAD_NAME_MAX 15 /* bytes without the NUL: the kernel's TASK_COMM_LEN */

/* Runs main(argument) in a new thread. All signals except those of its own faults (SIGSEGV and the like, which would
 * kill the process silently if they were blocked) are blocked in it, so they reach the main thread's loop. `name`
 * (THREAD_NAME_MAX at most, asserted) is what top and gdb show; it is set when this returns. Returns 0 or a negative
 * errno, -EAGAIN being a limit on threads. The thread must be joined, or detached. */
int thread_start(pthread_t *ret_thread, const char *name, void *(*main)(void *), void *argument);

/* Waits for a condition until clock_now_ns() is until_ns at the latest; the condition needs no attributes. Returns 0,
 * or ETIMEDOUT as pthread_cond_timedwait() does; both may come early or late, so look at what was waited for. */
int thread_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns);

/* Nobody will join the thread. Its end must be known by other means before what it uses is freed. */
void thread_detach(pthread_t thread);

/* Waits until the thread has ended; blocks as long as that takes. */
void thread_join(pthread_t thread);
