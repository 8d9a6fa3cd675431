#include "daemon/ring/lent.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/work/sweeper.h"
#include "proto/base/bytes.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define SAID_AFTER_NS 2000000000ull /* a client that ends lets go within milliseconds */

struct lent {
        TAILQ_ENTRY(lent) entry;
        struct budget *budget;
        struct sweep sweep;
        int fd;
        uint64_t n_bytes; /* charged: at most what was charged to the budget for it */
        uint64_t since_ns;
        bool said; /* it has been logged */
        char whose[LENT_WHOSE_MAX];
};

static int open_anew(int fd, int flags) {
        char path[64];
        int again;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, flags | O_CLOEXEC);
        return again < 0 ? -errno : again;
}

int lent_open(int fd, int flags, struct why *why) {
        _cleanup_(closep) int lent = open_anew(fd, flags);

        if (lent == -ENOENT || lent == -ENOTDIR)
                return why_set(why, -ENOSYS,
                               "ring: /proc is not there (a chroot or container without it), and the daemon needs "
                               "/proc/self/fd to know whether a client has released its memory: mount it (mount -t "
                               "proc proc /proc), or use a daemon outside through its socket (DATALOADERD_SOCKET)");
        if (lent < 0)
                return why_errno(why, lent,
                                 "ring: /proc/self/fd, which shows whether a client has released its memory");
        if (flock(lent, LOCK_SH | LOCK_NB) < 0)
                return why_errno(why, -errno, "ring: locking shared memory");
        return take_fd(&lent);
}

/* ---- does any process hold it? ------------------------------------------------------------------------------- */

enum answer {
        NOBODY,
        SOMEBODY,
        NOT_KNOWN,
};

static enum answer ask_lease(int fd) {
        _cleanup_(closep) int own = open_anew(fd, O_RDWR);

        if (own < 0)
                return SOMEBODY; /* no descriptors left: tried again later */
        if (fcntl(own, F_SETLEASE, F_WRLCK) == 0)
                return NOBODY; /* the close gives the lease back */
        return errno == EAGAIN ? SOMEBODY : NOT_KNOWN;
}

static enum answer ask_lock(int fd) {
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return SOMEBODY;
        flock(fd, LOCK_UN);
        return NOBODY;
}

static bool leases_work; /* set once */

/* Old kernels also count references that do not matter, and then never grant a lease. */
static void lent_find_out(void) {
        _cleanup_(closep) int fd = memfd_create("dataloaderd-lease", MFD_CLOEXEC), other = -1;

        if (fd < 0 || ask_lease(fd) != NOBODY)
                return;
        other = open_anew(fd, O_RDONLY);
        leases_work = other >= 0 && ask_lease(fd) == SOMEBODY;
}

static bool is_held(int fd) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        enum answer answer = NOT_KNOWN;

        pthread_once(&once, lent_find_out);
        if (leases_work)
                answer = ask_lease(fd);
        if (answer == NOT_KNOWN)
                answer = ask_lock(fd);
        return answer == SOMEBODY;
}

/* ---- the list of rings --------------------------------------------------------------------------------------- */

void lent_list_init(struct lent_list *list) {
        *list = (struct lent_list){ 0 };
        TAILQ_INIT(&list->list);
        pthread_mutex_init(&list->lock, NULL);
}

/* Its pages are freed with the last reference to the file. If a process has hidden one on purpose, it finds the pages
 * empty, and pages that it touches again count as its own. Punching the hole is refused where writing is sealed: a
 * control segment is small. */
static void lent_let_go(struct budget *budget, int fd, uint64_t n_bytes) {
        struct stat state;

        if (fstat(fd, &state) == 0 && state.st_size > 0)
                (void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, state.st_size);
        close(fd);
        budget_release(budget, n_bytes);
}

static void sweep(void *userdata) {
        struct lent *held = userdata;

        lent_let_go(held->budget, held->fd, held->n_bytes);
        free(held);
}

static void lent_free(struct lent_list *list, struct lent *held) {
        TAILQ_REMOVE(&list->list, held, entry);
        atomic_fetch_sub_explicit(&held->budget->n_held, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&list->n_bytes, held->n_bytes, memory_order_relaxed);
        if (held->said)
                log_info("ring", "%s has released its memory", held->whose);
        sweeper_free(&held->sweep, held->n_bytes, sweep, held);
        atomic_fetch_sub_explicit(&list->n, 1, memory_order_release); /* later: it is here, or left to the sweeper */
}

void lent_list_fini(struct lent_list *list) {
        struct lent *held;

        while ((held = TAILQ_FIRST(&list->list))) {
                TAILQ_REMOVE(&list->list, held, entry);
                atomic_fetch_sub_explicit(&held->budget->n_held, 1, memory_order_relaxed);
                close(held->fd); /* with its pages: the client owns them now */
                budget_release(held->budget, held->n_bytes);
                free(held);
        }
        pthread_mutex_destroy(&list->lock);
}

void lent_leave(struct lent_list *list, struct budget *budget, int fd, uint64_t n_bytes, const char *whose) {
        struct lent *held;

        if (!is_held(fd)) {
                lent_let_go(budget, fd, n_bytes);
                return;
        }
        held = calloc(1, sizeof(*held));
        if (!held) { /* no memory to remember it: it stays charged, which is safe, though a loss */
                log_error("ring", "no memory to remember what %s holds: %llu bytes stay charged", whose,
                          (unsigned long long)n_bytes);
                close(fd);
                return;
        }
        held->budget = budget;
        held->fd = fd;
        held->n_bytes = n_bytes;
        held->since_ns = clock_now_ns();
        snprintf(held->whose, sizeof(held->whose), "%s", whose);

        pthread_mutex_lock(&list->lock);
        TAILQ_INSERT_TAIL(&list->list, held, entry);
        atomic_fetch_add_explicit(&list->n_bytes, n_bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&list->n, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&budget->n_held, 1, memory_order_relaxed);
        pthread_mutex_unlock(&list->lock);
}

void lent_look(struct lent_list *list) {
        struct lent *held, *next;
        uint64_t now_ns;

        if (atomic_load_explicit(&list->n, memory_order_relaxed) == 0)
                return;
        now_ns = clock_now_ns();
        pthread_mutex_lock(&list->lock);
        TAILQ_FOREACH_SAFE(held, &list->list, entry, next) {
                char text[BYTES_TEXT_MAX];

                if (!is_held(held->fd)) {
                        lent_free(list, held);
                } else if (!held->said && now_ns - held->since_ns > SAID_AFTER_NS) {
                        held->said = true;
                        log_info("ring", "%s has left and still holds %s: charged until it is released", held->whose,
                                 format_bytes(text, held->n_bytes));
                }
        }
        pthread_mutex_unlock(&list->lock);
}
