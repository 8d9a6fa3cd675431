#include "daemon/base/cell/cell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/cell/spawn.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define HELLO_NS     10000000000ull
#define LOOK_SECONDS 1   /* between two questions whether the answer is still wanted */
#define WRITTEN_MAX  200 /* bytes of what it wrote that are told */

struct cell {
        LIST_ENTRY(cell) entry; /* cells->lock */
        struct cells *cells;
        struct spawned process;
        uint64_t n_orders;
        uint64_t known[CELL_MEMORIES_MAX]; /* cells->lock; numbers of the memories that it has, 0: none */
        uint32_t idx_next;                 /* of the memory that makes room for another */
};

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
static void forget(struct cell *cell, uint32_t idx) {
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
                                forget(cell, i);
        pthread_mutex_unlock(&cells->lock);
}

uint64_t cell_cpu_ns(const struct cell *cell) {
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
                ns += cell_cpu_ns(cell);
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

/* ---- its end ----------------------------------------------------------------------------------------------------- */

static void leave_list(struct cell *cell, uint64_t cpu_ns) {
        pthread_mutex_lock(&cell->cells->lock);
        LIST_REMOVE(cell, entry);
        cell->cells->ended_cpu_ns += cpu_ns;
        pthread_mutex_unlock(&cell->cells->lock);
}

/* The beginning of what it wrote, if anything: ", it wrote: ...". */
static void add_written(const struct cell *cell, struct why *how) {
        char written[WRITTEN_MAX + 1];
        ssize_t n = read(cell->process.written, written, WRITTEN_MAX);
        struct why before = *how;

        if (n <= 0)
                return;
        written[n] = '\0';
        written[strcspn(written, "\r\n")] = '\0';
        why_set(how, 0, "%s; it wrote: %s", before.text, written);
}

static void describe(const struct cell *cell, int error, int status, struct why *how) {
        if (error == -ETIMEDOUT)
                why_set(how, 0, "did not answer and was killed");
        else if (error == -EPROTO)
                why_set(how, 0, "gave an answer that makes no sense and was killed");
        else if (WIFSIGNALED(status))
                why_set(how, 0, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
        else
                why_set(how, 0, "ended with status %d", WEXITSTATUS(status));
        add_written(cell, how);
}

static uint64_t ns_of(struct timeval time) {
        return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000;
}

/* A signal does not change how a process ended that is about to end; one that has only closed its channel ends now. */
void cell_end(struct cell *cell, int error, struct why *ret_how) {
        struct rusage usage = { 0 };
        int status = 0;

        if (!cell)
                return;
        kill(cell->process.pid, SIGKILL);
        while (wait4(cell->process.pid, &status, 0, &usage) < 0 && errno == EINTR)
                continue;
        if (error < 0 && ret_how)
                describe(cell, error, status, ret_how);
        leave_list(cell, ns_of(usage.ru_utime) + ns_of(usage.ru_stime));
        spawned_close(&cell->process);
        free(cell);
}

/* ---- packets ----------------------------------------------------------------------------------------------------- */

static int tell(struct cell *cell, const void *packet, size_t n_bytes, int fd) {
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

/* The descriptor's time limit makes recv() return once a second. */
static ssize_t await(struct cell *cell, void *packet, const struct cell_patience *patience) {
        uint64_t begin_ns = 0;
        ssize_t n;

        for (;;) {
                n = recv(cell->process.channel, packet, CELL_MESSAGE_MAX, MSG_TRUNC);
                if (n > 0)
                        return n >= (ssize_t)sizeof(struct cell_head) && n <= (ssize_t)CELL_MESSAGE_MAX ? n : -EPROTO;
                if (n == 0 || (errno != EINTR && errno != EAGAIN))
                        return -EPIPE;
                if (begin_ns == 0)
                        begin_ns = clock_now_ns() - LOOK_SECONDS * 1000000000ull;
                if (clock_now_ns() - begin_ns >= patience->limit_ns)
                        return -ETIMEDOUT;
                if (patience->is_over && patience->is_over(patience->userdata))
                        return -ECANCELED;
        }
}

ssize_t cell_ask(struct cell *cell, void *order, size_t n_order, void *answer, const struct cell_patience *patience) {
        struct cell_head *head = order;
        const struct cell_head *reply = answer;
        ssize_t n;
        int r;

        head->word = CELL_ORDER;
        head->number = ++cell->n_orders;
        r = tell(cell, order, n_order, -1);
        n = r < 0 ? r : await(cell, answer, patience);
        if (n > 0 && (reply->word != CELL_ANSWER || reply->number != head->number || reply->result > 0))
                return -EPROTO;
        return n;
}

int cell_lend(struct cell *cell, const struct cell_memory *memory) {
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
                forget(cell, idx);
        }
        if (!is_known)
                cell->known[idx] = memory->number;
        pthread_mutex_unlock(&cell->cells->lock);
        return is_known ? 0 : tell(cell, &word, sizeof(word), memory->fd);
}

/* ---- its beginning ----------------------------------------------------------------------------------------------- */

static int set_up(struct cell *cell, const void *setup, size_t n_setup, struct why *why) {
        static const struct cell_patience PATIENCE = { .limit_ns = HELLO_NS };
        uint8_t packet[CELL_MESSAGE_MAX] = { 0 };
        struct cell_head head = { .word = CELL_SETUP };
        struct cell_hello hello;
        ssize_t n;

        memcpy(packet, &head, sizeof(head));
        memcpy(packet + sizeof(head), setup, n_setup);
        n = tell(cell, packet, sizeof(head) + n_setup, -1);
        if (n == 0)
                n = await(cell, packet, &PATIENCE);
        if (n < 0)
                return (int)n;
        memcpy(&hello, packet, sizeof(hello));
        if (n != sizeof(hello) || hello.head.word != CELL_HELLO)
                return -EPROTO;
        if (hello.head.result < 0)
                return why_set(why, -ENOSYS, "isolation: %.*s", (int)sizeof(hello.why.text), hello.why.text);
        return 0;
}

static void join_list(struct cell *cell) {
        pthread_mutex_lock(&cell->cells->lock);
        LIST_INSERT_HEAD(&cell->cells->list, cell, entry);
        pthread_mutex_unlock(&cell->cells->lock);
}

int cell_start(struct cells *cells, const char *kind, const void *setup, size_t n_setup, struct cell **ret_cell,
               struct why *why) {
        struct cell *cell = calloc(1, sizeof(*cell));
        struct why how;
        int r;

        if (!cell)
                return why_errno(why, -ENOMEM, "isolation: a process for a decoder");
        cell->cells = cells;
        r = spawn_cell(cells->program, kind, &cell->process);
        if (r < 0) {
                free(cell);
                return why_errno(why, r, "isolation: starting a process for a decoder (%s)", cells->program);
        }
        join_list(cell);
        setsockopt(cell->process.channel, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = LOOK_SECONDS },
                   sizeof(struct timeval));
        r = set_up(cell, setup, n_setup, why);
        if (r < 0) {
                cell_end(cell, r == -ENOSYS ? 0 : r, &how);
                return r == -ENOSYS ? r : why_set(why, -ENOSYS, "isolation: a process for a decoder %s", how.text);
        }
        *ret_cell = cell;
        return 0;
}
