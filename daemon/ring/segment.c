#include "daemon/ring/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/threads/thread.h"
#include "daemon/base/work/sweeper.h"
#include "daemon/ring/numa.h"
#include "proto/base/cleanup.h"
#include "proto/base/shown/amounts.h"

#define TOUCH_THREADS_MAX 16u
#define TOUCH_SHARE_MIN   (1ull << 20)   /* a smaller share does not justify a thread */
#define TOUCH_PIECE       (256ull << 10) /* touched in one call: tens of microseconds */

static uint64_t segment_round_up(uint64_t value, uint64_t unit) {
        return (value + unit - 1) / unit * unit;
}

static int no_file(int error, struct why *why) {
        if (error != -EPERM && error != -EACCES && error != -ENOSYS)
                return why_errno(why, error, "ring: a file for shared memory (memfd_create)");
        return why_set(why, -ENOSYS,
                       "ring: memfd_create is refused (%s), so batches have no memory that the daemon and its clients "
                       "share: a seccomp filter or security module forbids the call; allow it in the profile of the "
                       "container or sandbox",
                       strerror(-error));
}

static int segment_no_memory(const struct segment_options *options, struct why *why) {
        int error = errno;
        char size[BYTES_TEXT_MAX];

        return why_errno(why, -error, "ring: %s of shared memory are not available",
                         format_bytes(size, options->n_bytes));
}

/* Makes the memfd and maps it. */
static int segment_map(struct segment *segment, const struct segment_options *options, struct why *why) {
        uint64_t n_bytes = segment_round_up(options->n_bytes, DLP_SLOT_ALIGN);
        _cleanup_(closep) int fd = -1;
        void *base;

        fd = memfd_create(options->name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return no_file(-errno, why);
        if (ftruncate(fd, (off_t)n_bytes) < 0)
                return segment_no_memory(options, why);
        base = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED)
                return segment_no_memory(options, why);

        segment->fd = take_fd(&fd);
        segment->base = base;
        segment->n_bytes = n_bytes;
        return 0;
}

struct touch {
        uint8_t *base;
        uint64_t n_bytes;
        int result;
        pthread_t thread;
        bool started;
};

static void *touch_main(void *userdata) {
        struct touch *touch = userdata;

        /* Unlike a store, populating reports a lack of memory and does not raise SIGBUS. During the call the kernel
         * holds the lock of our address space, and other threads that map memory wait (for other rings and large
         * pictures). So this touches one piece at a time. */
        for (uint64_t at = 0; at < touch->n_bytes && touch->result == 0; at += TOUCH_PIECE) {
                uint64_t rest = touch->n_bytes - at;

                if (madvise(touch->base + at, rest < TOUCH_PIECE ? rest : TOUCH_PIECE, MADV_POPULATE_WRITE) < 0)
                        touch->result = -errno;
        }
        return NULL;
}

/* Touches the pages in parallel: the kernel clears only one page at a time for each thread. */
static int segment_touch(struct segment *segment, uint64_t offset, uint64_t n_bytes, uint32_t n_threads) {
        struct touch touches[TOUCH_THREADS_MAX] = { 0 };
        uint64_t share;
        int result = 0;

        if (n_threads < 1)
                n_threads = 1;
        if (n_threads > TOUCH_THREADS_MAX)
                n_threads = TOUCH_THREADS_MAX;
        share = segment_round_up(n_bytes / n_threads + 1, TOUCH_SHARE_MIN);

        for (uint32_t i = 0; i < n_threads && i * share < n_bytes; i++) {
                uint64_t rest = n_bytes - i * share;

                touches[i].base = segment->base + offset + i * share;
                touches[i].n_bytes = rest < share ? rest : share;
                /* This thread touches the last share, and any share for which no thread could be started. */
                if (rest > share && thread_start(&touches[i].thread, "touch", touch_main, &touches[i]) == 0)
                        touches[i].started = true;
                else
                        touch_main(&touches[i]);
        }
        for (uint32_t i = 0; i < n_threads; i++) {
                if (touches[i].started)
                        thread_join(touches[i].thread);
                if (touches[i].result < 0)
                        result = touches[i].result;
        }
        return result;
}

void segment_touch_rest(struct segment *segment, uint32_t n_threads) {
        if (segment->n_touched < segment->n_bytes)
                segment_touch(segment, segment->n_touched, segment->n_bytes - segment->n_touched, n_threads);
}

/* How much of a mapping has huge pages in fact: asking for them does not guarantee them. */
static uint64_t huge_bytes_of(const struct segment *segment) {
        _cleanup_(closep) int fd = -1;
        char line[512];
        uint64_t kib = 0;
        bool inside = false;
        FILE *smaps;

        smaps = fopen("/proc/self/smaps", "re");
        if (!smaps)
                return 0;
        while (fgets(line, sizeof(line), smaps)) {
                unsigned long long start, end, value;

                if (sscanf(line, "%llx-%llx ", &start, &end) == 2) {
                        if (inside)
                                break;
                        inside = start == (uintptr_t)segment->base;
                } else if (inside && sscanf(line, "ShmemPmdMapped: %llu kB", &value) == 1) {
                        kib = value;
                        break;
                }
        }
        fclose(smaps);
        return kib << 10;
}

static void describe_pages(struct segment *segment, bool transparent, char *text, size_t capacity) {
        uint64_t huge = transparent ? huge_bytes_of(segment) : 0;

        if (huge > 0)
                snprintf(text, capacity, "2 MiB pages (transparent, %llu of %llu MiB)",
                         (unsigned long long)(huge >> 20),
                         (unsigned long long)((segment->n_touched + (1 << 20) - 1) >> 20));
        else
                snprintf(text, capacity, "4 KiB pages");
}

static void lock_pages(struct segment *segment, char *text, size_t capacity) {
        struct rlimit limit = { 0 };

        /* MLOCK_ONFAULT: pages are locked when they are touched, and we decide when that is. */
        if (mlock2(segment->base, segment->n_bytes, MLOCK_ONFAULT) == 0) {
                snprintf(text, capacity, "locked");
                return;
        }
        getrlimit(RLIMIT_MEMLOCK, &limit);
        snprintf(text, capacity, "not locked (%s; RLIMIT_MEMLOCK is %llu KiB)", strerror(errno),
                 (unsigned long long)limit.rlim_cur >> 10);
}

int segment_init(struct segment *segment, const struct segment_options *options, struct why *why) {
        char pages[64], locked[96] = "not locked", node[48] = "";
        bool transparent = false;
        int r;

        *segment = (struct segment){ .fd = -1, .lent_fd = -1 };

        r = segment_map(segment, options, why);
        if (r < 0)
                return r;
        if (options->huge_pages == SEGMENT_TRY)
                transparent = madvise(segment->base, segment->n_bytes, MADV_HUGEPAGE) == 0;

        if (options->numa_node >= 0) { /* before pages are touched: those that exist would stay where they are */
                r = numa_bind(segment->base, segment->n_bytes, options->numa_node);
                snprintf(node, sizeof(node), r < 0 ? ", not bound to node %d" : ", node %d", options->numa_node);
        }

        if (!options->sparse) {
                if (options->lock == SEGMENT_TRY)
                        lock_pages(segment, locked, sizeof(locked));
                segment->n_touched = segment->n_bytes;
                if (options->n_bytes_first && options->n_bytes_first < segment->n_bytes)
                        segment->n_touched = segment_round_up(options->n_bytes_first, DLP_SLOT_ALIGN);
                r = segment_touch(segment, 0, segment->n_touched, options->n_threads);
                if (r < 0) {
                        segment_fini(segment);
                        errno = ENOMEM;
                        return segment_no_memory(options, why);
                }
                describe_pages(segment, transparent, pages, sizeof(pages));
        } else {
                segment->n_touched = segment->n_bytes;
                snprintf(pages, sizeof(pages), "4 KiB pages as they are written");
        }
        snprintf(segment->obtained, sizeof(segment->obtained), "%s, %s%s", pages, locked, node);
        return 0;
}

int segment_unmap(struct segment *segment) {
        int fd = segment->base ? segment->fd : -1;

        if (segment->base) {
                sweeper_unmap(segment->base, segment->n_bytes);
                closep(&segment->lent_fd);
        }
        *segment = (struct segment){ .fd = -1, .lent_fd = -1 };
        return fd;
}

void segment_fini(struct segment *segment) {
        int fd = segment_unmap(segment);

        closep(&fd);
}

int segment_seal(struct segment *segment, bool read_only, struct why *why) {
        int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (read_only ? F_SEAL_FUTURE_WRITE : 0);

        if (fcntl(segment->fd, F_ADD_SEALS, seals) < 0)
                return why_errno(why, -errno, "ring: sealing the shared memory");
        return 0;
}
