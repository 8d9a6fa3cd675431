#include "daemon/base/work/closer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/threads/thread.h"
#include "proto/base/clock.h"

#define INTERRUPT SIGUSR1 /* nothing but a reason for the kernel to end a wait */

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* since Linux 6.16 */
#endif

struct closing {
        int fd;
        uid_t user;
        bool is_connection;
};

/* The threads are detached and this is static, so that one that hangs can be left behind. */
static struct {
        pthread_mutex_t lock;
        pthread_cond_t came, went;
        struct closing waiting[CLOSER_MAX];
        uint32_t n_waiting;
        enum {
                SEAT_FREE,
                SEAT_IDLE,
                SEAT_BUSY
        } seats[CLOSER_THREADS];
        uid_t users[CLOSER_THREADS]; /* whose descriptor a busy one closes */
        uint32_t n_threads;
        bool is_on;
} closer = { .lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER, .went = PTHREAD_COND_INITIALIZER };

/* ---- the queue of a connection ---------------------------------------------------------------------------------- */

#define LOOK_BYTES  4096u
#define LOOK_ERRORS 4u

/* What comes first in the queue of a socket that has been shut down: 0: nothing; 1: plain bytes, `ret_n` of them;
 * -EBADMSG: descriptors as well, or it is not known. With SO_PASSCRED each packet, also an empty one, has credentials,
 * which tells it from the end; there is no room for more, so descriptors are cut off. */
static int look_at_first(int fd, bool is_stream, size_t *ret_n) {
        union {
                char bytes[CMSG_SPACE(sizeof(struct ucred))];
                struct cmsghdr align;
        } control;
        char bytes[LOOK_BYTES];
        struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
        struct msghdr message = { .msg_iov = &iov,
                                  .msg_iovlen = 1,
                                  .msg_control = control.bytes,
                                  .msg_controllen = CMSG_LEN(sizeof(struct ucred)) };
        ssize_t n = -1;

        /* An error of the socket (its peer has closed it with unread bytes) is told once. */
        for (unsigned i = 0; n < 0 && i < LOOK_ERRORS; i++)
                n = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);
        if (n < 0 || (message.msg_flags & MSG_CTRUNC))
                return -EBADMSG;
        *ret_n = (size_t)n;
        return n > 0 || (!is_stream && message.msg_controllen > 0);
}

/* No packet comes after a shutdown. Reads away what is in the queue; up to the first descriptor, unless `all`. Returns
 * whether the queue is empty. */
static bool closer_empty(int fd, bool all) {
        int on = 1, type = 0, r;
        socklen_t n_type = sizeof(type);
        size_t n = 0;

        if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n_type) < 0 || shutdown(fd, SHUT_RDWR) < 0)
                return false;
        for (;;) {
                char bytes[LOOK_BYTES];

                r = look_at_first(fd, type == SOCK_STREAM, &n);
                if (r == 0)
                        return true;
                if ((r < 0 && !all) || recv(fd, bytes, r < 0 || n == 0 ? 1 : n, MSG_DONTWAIT) < 0)
                        return false;
        }
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

static uint32_t n_busy_for(uid_t user) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < CLOSER_THREADS; i++)
                n += closer.seats[i] == SEAT_BUSY && closer.users[i] == user;
        return n;
}

static bool closer_take_next(struct closing *ret_closing) {
        for (uint32_t i = 0; i < closer.n_waiting; i++)
                if (n_busy_for(closer.waiting[i].user) < CLOSER_USER_THREADS) {
                        *ret_closing = closer.waiting[i];
                        closer.waiting[i] = closer.waiting[--closer.n_waiting];
                        return true;
                }
        return false;
}

/* Interrupts this thread from time to time, or no more. */
static void set_alarm(timer_t timer, long nanoseconds) {
        struct itimerspec times = { .it_interval.tv_nsec = nanoseconds, .it_value.tv_nsec = nanoseconds };

        timer_settime(timer, 0, &times, NULL);
}

static void *closer_main(void *userdata) {
        struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = INTERRUPT };
        uintptr_t seat = (uintptr_t)userdata;
        struct closing closing;
        bool has_timer;
        timer_t timer;
        sigset_t set;

        event._sigev_un._tid = gettid();
        has_timer = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
        sigemptyset(&set);
        sigaddset(&set, INTERRUPT);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);

        pthread_mutex_lock(&closer.lock);
        for (;;) {
                if (!closer_take_next(&closing)) {
                        if (!closer.is_on)
                                break;
                        pthread_cond_wait(&closer.came, &closer.lock);
                        continue;
                }
                closer.seats[seat] = SEAT_BUSY;
                closer.users[seat] = closing.user;
                pthread_mutex_unlock(&closer.lock);
                if (has_timer)
                        set_alarm(timer, CLOSER_PATIENCE_NS);
                if (closing.is_connection)
                        closer_empty(closing.fd, true);
                close(closing.fd);
                if (has_timer)
                        set_alarm(timer, 0);
                pthread_mutex_lock(&closer.lock);
                closer.seats[seat] = SEAT_IDLE;
                pthread_cond_broadcast(&closer.came); /* another thread may have passed over this user */
        }
        closer.seats[seat] = SEAT_FREE;
        closer.n_threads--;
        pthread_cond_broadcast(&closer.went);
        pthread_mutex_unlock(&closer.lock);
        if (has_timer)
                timer_delete(timer);
        return NULL;
}

/* A thread for what waits, if all are busy. */
static int add_thread(void) {
        uintptr_t seat = 0;
        pthread_t thread;
        int r;

        for (uint32_t i = 0; i < CLOSER_THREADS; i++)
                if (closer.seats[i] == SEAT_IDLE)
                        return 0;
        while (seat < CLOSER_THREADS && closer.seats[seat] != SEAT_FREE)
                seat++;
        if (seat == CLOSER_THREADS)
                return 0;
        closer.seats[seat] = SEAT_IDLE;
        r = thread_start(&thread, "closer", closer_main, (void *)seat);
        if (r < 0) {
                closer.seats[seat] = SEAT_FREE;
                return r;
        }
        closer.n_threads++;
        thread_detach(thread);
        return 0;
}

/* ---- what is to be closed ---------------------------------------------------------------------------------------- */

static void closer_on_interrupt(int number) {
        (void)number;
}

int closer_start(struct why *why) {
        int r;

        sigaction(INTERRUPT, &(struct sigaction){ .sa_handler = closer_on_interrupt }, NULL); /* no SA_RESTART */
        pthread_mutex_lock(&closer.lock);
        closer.is_on = true;
        r = add_thread();
        closer.is_on = r == 0;
        pthread_mutex_unlock(&closer.lock);
        return r < 0 ? why_errno(why, r, "closer: starting its thread") : 0;
}

void closer_stop(void) {
        uint64_t until_ns = clock_now_ns() + CLOSER_END_NS;

        pthread_mutex_lock(&closer.lock);
        closer.is_on = false;
        pthread_cond_broadcast(&closer.came);
        while (closer.n_threads > 0 && clock_now_ns() < until_ns)
                thread_wait_until(&closer.went, &closer.lock, until_ns);
        pthread_mutex_unlock(&closer.lock);
}

/* False: it does not wait, and is the caller's. */
static bool closer_put(const struct closing *closing) {
        bool is_on;

        pthread_mutex_lock(&closer.lock);
        is_on = closer.is_on;
        if (is_on && closer.n_waiting < CLOSER_MAX) {
                closer.waiting[closer.n_waiting++] = *closing;
                add_thread(); /* without one, those that there are have to do */
                pthread_cond_signal(&closer.came);
        } else if (is_on) {
                log_user_error(closing->user, "closer", "a descriptor stays open until the daemon ends: too many wait");
        }
        pthread_mutex_unlock(&closer.lock);
        return is_on;
}

/* Memory as well: the last close() of a memfd of some GiB takes seconds. */
void closer_close(int fd, uid_t user) {
        if (!closer_put(&(struct closing){ fd, user, false }))
                close(fd);
}

void closer_end_connection(int fd, uid_t user) {
        if (closer_empty(fd, false) || !closer_put(&(struct closing){ fd, user, true }))
                close(fd);
}

bool closer_has_room(void) {
        bool has_room;

        pthread_mutex_lock(&closer.lock);
        has_room = closer.n_waiting < CLOSER_ROOM;
        pthread_mutex_unlock(&closer.lock);
        return has_room;
}

bool closer_has_room_for(uid_t user) {
        uint32_t n = 0;

        pthread_mutex_lock(&closer.lock);
        for (uint32_t i = 0; i < closer.n_waiting; i++)
                n += closer.waiting[i].user == user;
        pthread_mutex_unlock(&closer.lock);
        return n < CLOSER_USER_MAX;
}

void closer_refuse_descriptors(int fd) {
        int off = 0;

        (void)!setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)); /* older kernels cannot */
}
