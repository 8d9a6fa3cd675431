#include "daemon/base/cell/cell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define LOOK_MS     200  /* between two looks whether it has ended, and whether the answer is still wanted */
#define GRACE_MS    200  /* for one that has hung up to say how it ended */
#define WRITTEN_MAX 200u /* bytes of what it wrote that are told */

/* ---- all of them ------------------------------------------------------------------------------------------------- */

void cells_init(struct cells *cells, const char *program) {
        *cells = (struct cells){ .program = program };
        pthread_mutex_init(&cells->lock, NULL);
}

void cells_fini(struct cells *cells) {
        pthread_mutex_destroy(&cells->lock);
}

uint64_t cells_number(struct cells *cells) {
        return atomic_fetch_add_explicit(&cells->n_memories, 1, memory_order_relaxed) + 1;
}

/* With the lock. A cell that has no room for the packet reads none: whoever waits for it sees it end. */
static void cell_forget(struct cell *cell, uint32_t idx) {
        struct cell_head head = { .word = CELL_FORGET, .number = cell->known[idx] };

        cell->known[idx] = 0;
        if (send(cell->process.channel, &head, sizeof(head), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
                kill(cell->process.pid, SIGKILL);
}

void cells_forget(struct cells *cells, uint64_t number) {
        struct cell *cell;

        pthread_mutex_lock(&cells->lock);
        LIST_FOREACH(cell, &cells->list, entry)
                for (uint32_t i = 0; i < CELL_MEMORIES_MAX && number > 0; i++)
                        if (cell->known[i] == number)
                                cell_forget(cell, i);
        pthread_mutex_unlock(&cells->lock);
}

static uint64_t cell_total_ns(const struct cell *cell) {
        struct timespec time;
        clockid_t clock;

        if (clock_getcpuclockid(cell->process.pid, &clock) != 0 || clock_gettime(clock, &time) < 0)
                return 0;
        return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t cells_cpu_ns(struct cells *cells) {
        struct cell *cell;
        uint64_t ns;

        pthread_mutex_lock(&cells->lock);
        ns = cells->ended_cpu_ns;
        LIST_FOREACH(cell, &cells->list, entry)
                ns += cell_total_ns(cell);
        pthread_mutex_unlock(&cells->lock);
        return ns;
}

int cells_set_nice(struct cells *cells, int nice) {
        struct cell *cell;
        int r = 0;

        pthread_mutex_lock(&cells->lock);
        LIST_FOREACH(cell, &cells->list, entry)
                if (setpriority(PRIO_PROCESS, (id_t)cell->process.pid, nice) < 0 && errno != ESRCH)
                        r = -errno;
        pthread_mutex_unlock(&cells->lock);
        return r;
}

pid_t cell_pid(const struct cell *cell) {
        return cell->process.pid;
}

uint64_t cell_cpu_ns(struct cell *cell) {
        uint64_t now_ns = cell->process.pid > 0 ? cell_total_ns(cell) : 0, before_ns = cell->asked_cpu_ns;

        cell->asked_cpu_ns = now_ns;
        return now_ns > before_ns ? now_ns - before_ns : 0;
}

/* ---- its end ----------------------------------------------------------------------------------------------------- */

/* Before its number can be another process's: who forgets a memory may end it. Returns the time that counts already. */
static uint64_t leave_list(struct cell *cell) {
        uint64_t cpu_ns = cell_total_ns(cell);

        pthread_mutex_lock(&cell->cells->lock);
        LIST_REMOVE(cell, entry);
        cell->cells->ended_cpu_ns += cpu_ns;
        pthread_mutex_unlock(&cell->cells->lock);
        return cpu_ns;
}

static void add_cpu(struct cells *cells, uint64_t cpu_ns) {
        pthread_mutex_lock(&cells->lock);
        cells->ended_cpu_ns += cpu_ns;
        pthread_mutex_unlock(&cells->lock);
}

/* Has it ended? It stays as it is: nobody else gets its number. */
static bool cell_has_ended(const struct cell *cell, int patience_ms) {
        for (int ms = 0;; ms += 5) {
                siginfo_t info = { 0 };

                if (waitid(P_PID, (id_t)cell->process.pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
                        return errno != EINTR;
                if (info.si_pid != 0 || ms >= patience_ms)
                        return info.si_pid != 0;
                poll(NULL, 0, 5);
        }
}

/* The first line of what a CELL_STRANGE wrote; else "". */
static void read_written(const struct cell *cell, char written[WRITTEN_MAX + 1]) {
        ssize_t n = cell->process.written < 0 ? 0 : read(cell->process.written, written, WRITTEN_MAX);

        written[n > 0 ? n : 0] = '\0';
        written[strcspn(written, "\r\n")] = '\0';
}

static uint64_t cell_ns_of(struct timeval time) {
        return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000;
}

/* Returns how it ended, as wait() says it. A signal does not change that of a process that has ended. The channel is
 * closed before it is waited for, in case the signal does not reach it: then it ends when it asks for its next order.
 */
static int cell_finish(struct cell *cell, char written[WRITTEN_MAX + 1]) {
        struct rusage usage = { 0 };
        uint64_t counted_ns = leave_list(cell), cpu_ns;
        int status = 0;

        kill(-cell->process.pid, SIGKILL);
        spawned_hang_up(&cell->process);
        while (wait4(cell->process.pid, &status, 0, &usage) < 0 && errno == EINTR)
                continue;
        read_written(cell, written);
        cpu_ns = cell_ns_of(usage.ru_utime) + cell_ns_of(usage.ru_stime);
        add_cpu(cell->cells, cpu_ns > counted_ns ? cpu_ns - counted_ns : 0);
        spawned_close(&cell->process);
        *cell = (struct cell){ 0 };
        return status;
}

void cell_end(struct cell *cell) {
        char written[WRITTEN_MAX + 1];

        if (cell->process.pid > 0)
                cell_finish(cell, written);
}

bool cell_has_failed(int error) {
        return error == -EPIPE || error == -ETIMEDOUT || error == -ECANCELED;
}

/* ---- blame ------------------------------------------------------------------------------------------------------- */

/* What it did instead of answering, of a decoder and of a plug-in. */
static const struct {
        const char *nonsense, *hung_up, *signal, *status;
} DEEDS[] = {
        [CELL_STRANGE] = { "gave an answer that makes no sense and was killed", "hung up and was killed",
                           "ended by signal", "ended with status" },
        [CELL_INSTALLED] = { "has ended its process, which answered nonsense, and was killed",
                             "has ended its process, which hung up, and was killed",
                             "has ended its process, which was ended by signal",
                             "has ended its process, which exited with status" },
};

static void blame_late(enum cell_trust trust, uint64_t limit_ns, struct why *why) {
        if (trust == CELL_STRANGE)
                why_set(why, 0, "did not answer and was killed");
        else
                why_set(why, 0, "did not come back within %llu seconds, and its process was killed",
                        (unsigned long long)limit_ns / 1000000000u);
}

/* `error`: of what was asked last. Returns it, as cell_ask() does. */
static int cell_fail(struct cell *cell, int error, uint64_t limit_ns, struct why *why) {
        enum cell_trust trust = cell->trust;
        bool has_hung_up = error == -EPIPE && !cell_has_ended(cell, GRACE_MS);
        char written[WRITTEN_MAX + 1];
        int status = cell_finish(cell, written);
        struct why bare;

        if (error == -ECANCELED)
                return why_set(why, error, "was not waited for: the daemon ends");
        if (error == -ETIMEDOUT)
                blame_late(trust, limit_ns, why);
        else if (error == -EPROTO || has_hung_up)
                why_set(why, 0, "%s", has_hung_up ? DEEDS[trust].hung_up : DEEDS[trust].nonsense);
        else if (WIFSIGNALED(status))
                why_set(why, 0, "%s %d (%s)", DEEDS[trust].signal, WTERMSIG(status), strsignal(WTERMSIG(status)));
        else
                why_set(why, 0, "%s %d", DEEDS[trust].status, WEXITSTATUS(status));
        bare = *why;
        if (written[0])
                why_set(why, 0, "%s; it wrote: %s", bare.text, written);
        return error == -ETIMEDOUT ? error : -EPIPE;
}

int cell_reject(struct cell *cell, struct why *why) {
        return cell_fail(cell, -EPROTO, 0, why);
}

/* ---- packets ----------------------------------------------------------------------------------------------------- */

static int cell_tell(struct cell *cell, const void *packet, size_t n_bytes, int fd) {
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control = { .head = {
                              .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
        struct iovec part = { (void *)(uintptr_t)packet, n_bytes };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
        ssize_t n;

        if (fd >= 0) {
                memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
                message.msg_control = &control;
                message.msg_controllen = sizeof(control);
        }
        do
                n = sendmsg(cell->process.channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n >= 0)
                return 0;
        return errno == EAGAIN || errno == ECONNRESET ? -EPIPE : -errno; /* EAGAIN: it reads nothing */
}

/* The descriptor's time limit makes recv() return now and then. What the process has started may hold its end of the
 * channel after it has ended; its last answer may lie there then. */
static ssize_t cell_await(struct cell *cell, void *packet, const struct cell_patience *patience) {
        uint64_t begin_ns = 0;
        int more = 0;
        ssize_t n;

        for (;;) {
                n = recv(cell->process.channel, packet, CELL_MESSAGE_MAX, MSG_TRUNC | more);
                if (n > 0)
                        return n >= (ssize_t)sizeof(struct cell_head) && n <= (ssize_t)CELL_MESSAGE_MAX ? n : -EPROTO;
                if (n == 0 || more || (errno != EINTR && errno != EAGAIN))
                        return -EPIPE;
                if (begin_ns == 0)
                        begin_ns = clock_now_ns() - LOOK_MS * 1000000ull;
                if (cell_has_ended(cell, 0))
                        more = MSG_DONTWAIT;
                else if (clock_now_ns() - begin_ns >= patience->limit_ns)
                        return -ETIMEDOUT;
                else if (patience->is_over && patience->is_over(patience->userdata))
                        return -ECANCELED;
        }
}

ssize_t cell_ask(struct cell *cell, void *order, size_t n_order, void *answer, const struct cell_patience *patience,
                 struct why *why) {
        struct cell_head *head = order;
        const struct cell_head *reply = answer;
        ssize_t n = cell->error;

        head->word = CELL_ORDER;
        head->number = ++cell->n_orders;
        if (n == 0)
                n = cell_tell(cell, order, n_order, -1);
        if (n == 0)
                n = cell_await(cell, answer, patience);
        if (n > 0 && (reply->word != CELL_ANSWER || reply->number != head->number || reply->result > 0))
                n = -EPROTO;
        return n < 0 ? cell_fail(cell, (int)n, patience->limit_ns, why) : n;
}

void cell_lend(struct cell *cell, const struct cell_memory *memory) {
        struct cell_memory_word word = { .head = { .word = CELL_MEMORY, .number = memory->number },
                                         .n_bytes = memory->n_bytes,
                                         .is_writable = memory->is_writable };
        uint32_t idx = CELL_MEMORIES_MAX;
        bool is_known = false;

        pthread_mutex_lock(&cell->cells->lock);
        for (uint32_t i = 0; i < CELL_MEMORIES_MAX && !is_known; i++) {
                is_known = cell->known[i] == memory->number;
                if (cell->known[i] == 0 && idx == CELL_MEMORIES_MAX)
                        idx = i;
        }
        if (!is_known && idx == CELL_MEMORIES_MAX) {
                idx = cell->idx_next++ % CELL_MEMORIES_MAX;
                cell_forget(cell, idx);
        }
        if (!is_known)
                cell->known[idx] = memory->number;
        pthread_mutex_unlock(&cell->cells->lock);
        if (!is_known && cell->error == 0)
                cell->error = cell_tell(cell, &word, sizeof(word), memory->fd);
}

/* ---- its beginning ----------------------------------------------------------------------------------------------- */

/* CELL_REFUSES, or what cell_await() may return. */
static int cell_set_up(struct cell *cell, const struct cell_terms *terms, struct why *why) {
        uint8_t packet[CELL_MESSAGE_MAX] = { 0 };
        struct cell_setup setup = { .head = { .word = CELL_SETUP }, .trust = terms->trust };
        struct cell_hello hello;
        ssize_t n;

        memcpy(packet, &setup, sizeof(setup));
        memcpy(packet + sizeof(setup), terms->setup, terms->n_setup);
        n = cell_tell(cell, packet, sizeof(setup) + terms->n_setup, -1);
        if (n == 0)
                n = cell_await(cell, packet, &terms->hello);
        if (n < 0)
                return (int)n;
        memcpy(&hello, packet, sizeof(hello));
        if (n != sizeof(hello) || hello.head.word != CELL_HELLO || hello.head.result > 0)
                return -EPROTO;
        if (hello.head.result == 0)
                return 0;
        why_set(why, 0, "%.*s", (int)sizeof(hello.why.text) - 1, hello.why.text);
        return CELL_REFUSES;
}

static void join_list(struct cell *cell) {
        pthread_mutex_lock(&cell->cells->lock);
        LIST_INSERT_HEAD(&cell->cells->list, cell, entry);
        pthread_mutex_unlock(&cell->cells->lock);
}

static int cell_spawn(struct cell *cell, struct cells *cells, const struct cell_terms *terms, struct why *why) {
        struct timeval look = { .tv_usec = LOOK_MS * 1000 };
        struct spawned process;
        int r = spawn_cell(cells->program, terms->kind, terms->trust, &process);

        if (r < 0)
                return why_errno(why, r, "%s", cells->program);
        *cell = (struct cell){ .cells = cells, .trust = terms->trust, .process = process };
        join_list(cell);
        if (setsockopt(cell->process.channel, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look)) == 0)
                return 0;
        r = -errno;
        cell_end(cell);
        return why_errno(why, r, "a process");
}

int cell_start(struct cell *cell, struct cells *cells, const struct cell_terms *terms, struct why *why) {
        int r;

        if (cell->process.pid > 0)
                return 0;
        r = cell_spawn(cell, cells, terms, why);
        if (r < 0)
                return r;
        r = cell_set_up(cell, terms, why);
        if (r == -EPROTO || cell_has_failed(r))
                return cell_fail(cell, r, terms->hello.limit_ns, why);
        if (r != 0)
                cell_end(cell);
        return r < 0 ? why_errno(why, r, "a process") : r;
}
