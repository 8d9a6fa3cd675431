#include "daemon/base/logging/writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/logging/log_limits.h"
#include "daemon/base/threads/thread.h"
#include "proto/base/clock.h"

enum writer_state {
        WRITER_NONE,
        WRITER_RUNS,
        WRITER_HANGS
};

static _Atomic int state = WRITER_NONE;
static pid_t owner; /* a forked child has no such thread */

static struct {
        pthread_mutex_t lock;
        pthread_cond_t came, went;
        pthread_t thread;
        writer_say say;
        struct log_text texts[LOG_TEXTS];
        uint64_t n_taken, n_written, n_lost;
        bool is_late; /* a line was not written in time, and some still wait */
        bool stops, is_over;
} writer = { .lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER, .went = PTHREAD_COND_INITIALIZER };

/* Whoever started the daemon may have made stderr non-blocking. */
static void write_whole(const struct log_text *text) {
        for (size_t done = 0; done < text->n;) {
                ssize_t n = write(STDERR_FILENO, text->bytes + done, text->n - done);
                struct pollfd poll_fd = { .fd = STDERR_FILENO, .events = POLLOUT };

                if (n > 0)
                        done += (size_t)n;
                else if (n < 0 && errno == EAGAIN && poll(&poll_fd, 1, -1) >= 0)
                        continue;
                else if (n == 0 || errno != EINTR)
                        return; /* there is nowhere left to report it */
        }
}

static struct log_text *writer_text_at(uint64_t number) {
        return &writer.texts[number % LOG_TEXTS];
}

static uint64_t n_free(void) {
        return LOG_TEXTS - (writer.n_taken - writer.n_written);
}

/* What the writer has to say by itself takes a place like any other line. */
static bool writer_say_own(uint64_t now_ns) {
        if (n_free() == 0 || !writer.say(writer.n_lost, now_ns, writer_text_at(writer.n_taken)))
                return false;
        writer.n_lost = 0;
        writer.n_taken++;
        return true;
}

static void writer_write_next(void) {
        pthread_mutex_unlock(&writer.lock);
        write_whole(writer_text_at(
                writer.n_written)); /* only this thread changes n_written; the place is kept until then */
        pthread_mutex_lock(&writer.lock);
        writer.n_written++;
        if (writer.n_written == writer.n_taken)
                writer.is_late = false;
        pthread_cond_broadcast(&writer.went);
}

static void *writer_main(void *userdata) {
        pthread_mutex_lock(&writer.lock);
        for (;;) {
                uint64_t due_ns;

                if (writer.n_written < writer.n_taken || writer_say_own(writer.stops ? UINT64_MAX : clock_now_ns())) {
                        writer_write_next();
                        continue;
                }
                if (writer.stops)
                        break;
                due_ns = limits_due_ns();
                if (due_ns == UINT64_MAX)
                        pthread_cond_wait(&writer.came, &writer.lock);
                else
                        thread_wait_until(&writer.came, &writer.lock, due_ns);
        }
        writer.is_over = true;
        pthread_cond_broadcast(&writer.went);
        pthread_mutex_unlock(&writer.lock);
        return NULL;
}

int writer_start(writer_say say) {
        int r;

        writer.say = say;
        writer.stops = writer.is_over = false;
        owner = getpid();
        r = thread_start(&writer.thread, "log", writer_main, NULL);
        if (r == 0)
                atomic_store(&state, WRITER_RUNS);
        return r;
}

void writer_stop(void) {
        uint64_t until_ns = clock_now_ns() + LOG_END_NS;
        bool is_over;

        if (atomic_load(&state) != WRITER_RUNS || owner != getpid())
                return;
        pthread_mutex_lock(&writer.lock);
        writer.stops = true;
        pthread_cond_signal(&writer.came);
        while (!writer.is_over && clock_now_ns() < until_ns)
                thread_wait_until(&writer.went, &writer.lock, until_ns);
        is_over = writer.is_over;
        pthread_mutex_unlock(&writer.lock);
        if (is_over)
                thread_join(writer.thread);
        else
                thread_detach(writer.thread);
        atomic_store(&state, is_over ? WRITER_NONE : WRITER_HANGS);
}

static void writer_wait_for(uint64_t number) {
        uint64_t until_ns = clock_now_ns() + LOG_WAIT_NS;

        while (writer.n_written <= number && !writer.is_late)
                if (clock_now_ns() < until_ns)
                        thread_wait_until(&writer.went, &writer.lock, until_ns);
                else
                        writer.is_late = true;
}

void writer_take(const struct log_text *text) {
        int now = atomic_load(&state);

        if (now == WRITER_NONE || owner != getpid()) {
                write_whole(text);
                return;
        }
        if (now == WRITER_HANGS)
                return;
        pthread_mutex_lock(&writer.lock);
        if (writer.n_lost > 0 && n_free() > 1)
                writer_say_own(0);
        if (writer.n_lost > 0 || n_free() == 0) {
                writer.n_lost++;
        } else {
                struct log_text *place = writer_text_at(writer.n_taken);

                place->n = text->n;
                memcpy(place->bytes, text->bytes, text->n);
                pthread_cond_signal(&writer.came);
                writer_wait_for(writer.n_taken++);
        }
        pthread_mutex_unlock(&writer.lock);
}

void writer_wake(void) {
        if (atomic_load(&state) != WRITER_RUNS)
                return;
        pthread_mutex_lock(&writer.lock);
        pthread_cond_signal(&writer.came);
        pthread_mutex_unlock(&writer.lock);
}
