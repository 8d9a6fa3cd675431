#include "tests/faults/points.h"

#include <execinfo.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct points *points;
_Thread_local bool points_exempt;

struct range {
        const char *name;
        uintptr_t begin, end, base;
};

/* Libraries that say when they have no memory. libconfuse ends the process; what hwloc, OpenSSL, curl, MPI and systemd
 * do is their own affair: their calls fail as a whole, in calls.h. */
static const char *const LIBRARIES[] = { "libevent", "libprotobuf-c", "libcjson",     "libspng", "libexpat",
                                         "libjpeg",  "libwebp",       "libtiff",      "libgif",  "liblz4",
                                         "libzstd",  "libz",          "libmicrohttpd" };
static struct range ranges[16];
static size_t n_ranges;

static const char *name_of(const char *path) {
        if (!path[0] && n_ranges == 0)
                return "";
        for (size_t i = 0; i < sizeof(LIBRARIES) / sizeof(LIBRARIES[0]); i++)
                if (strstr(path, LIBRARIES[i]))
                        return LIBRARIES[i];
        return NULL;
}

static int note_object(struct dl_phdr_info *info, size_t size, void *userdata) {
        const char *name = name_of(info->dlpi_name);

        for (int i = 0; name && i < info->dlpi_phnum; i++)
                if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X &&
                    n_ranges < sizeof(ranges) / sizeof(ranges[0])) {
                        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

                        ranges[n_ranges++] = (struct range){ name, begin, begin + info->dlpi_phdr[i].p_memsz,
                                                             info->dlpi_addr };
                }
        return 0;
}

void points_begin(void) {
        void *frames[2];

        backtrace(frames, 2); /* allocates when it is first called */
        dl_iterate_phdr(note_object, NULL);
}

uintptr_t points_base(void) {
        return ranges[0].base;
}

void points_join(void) {
        struct points *found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED, POINTS_FD, 0);

        points_begin();
        close(POINTS_FD);
        if (found != MAP_FAILED)
                points = found;
}

static const struct range *range_of(uintptr_t address) {
        for (size_t i = 0; i < n_ranges; i++)
                if (address >= ranges[i].begin && address < ranges[i].end)
                        return &ranges[i];
        return NULL;
}

const char *points_library(uintptr_t address) {
        const struct range *range = range_of(address);

        return range ? range->name : NULL;
}

uintptr_t points_relative(uintptr_t address) {
        const struct range *range = range_of(address);

        return range ? address - range->base : 0;
}

void points_arm(void) {
        if (points)
                atomic_store(&points->armed, true);
}

void points_disarm(void) {
        if (points)
                atomic_store(&points->armed, false);
}

bool points_hit(void) {
        return points && atomic_load(&points->hit);
}

/* ---- sites --------------------------------------------------------------------------------------------------- */

static bool is_ours(uintptr_t address) {
        return n_ranges > 0 && address >= ranges[0].begin && address < ranges[0].end;
}

/* Our own code keeps frame pointers; libraries don't, so there the unwinder has to look. */
static void collect(uintptr_t address, const void *frame, uintptr_t frames[SITE_DEPTH]) {
        const uintptr_t *at = frame;
        uint32_t n = 0;

        memset(frames, 0, SITE_DEPTH * sizeof(frames[0]));
        frames[n++] = address;
        if (is_ours(address)) {
                while (n < SITE_DEPTH) {
                        const uintptr_t *next = (const uintptr_t *)at[0];

                        if (next <= at || (uintptr_t)next - (uintptr_t)at > 1 << 20 || !is_ours(next[1]))
                                return;
                        frames[n++] = next[1];
                        at = next;
                }
        } else {
                void *all[24];
                int n_all = backtrace(all, 24), i = 0;

                while (i < n_all && (uintptr_t)all[i] != address)
                        i++;
                for (; i < n_all && n < SITE_DEPTH; i++)
                        if (is_ours((uintptr_t)all[i]))
                                frames[n++] = (uintptr_t)all[i];
        }
}

static uint64_t hash_of(const char *call, const uintptr_t frames[SITE_DEPTH]) {
        uint64_t hash = 0xcbf29ce484222325;

        for (const char *at = call; *at; at++)
                hash = (hash ^ (uint8_t)*at) * 0x100000001b3;
        for (uint32_t i = 0; i < SITE_DEPTH; i++)
                hash = (hash ^ points_relative(frames[i])) * 0x9e3779b97f4a7c15, hash ^= hash >> 29;
        return hash ? hash : 1;
}

/* The same in the runner's memory; a process that the daemon has started lies elsewhere. */
static uintptr_t in_runner(uintptr_t address) {
        return points->base ? address - ranges[0].base + points->base : address;
}

/* Of frames in libraries the runner knows nothing. */
static void note_frames(struct site *site, const uintptr_t frames[SITE_DEPTH]) {
        bool is_runner = !points->base || points->base == ranges[0].base;
        uint32_t n = 0;

        for (uint32_t i = 0; i < SITE_DEPTH; i++)
                if (is_runner)
                        site->frames[n++] = frames[i];
                else if (is_ours(frames[i]))
                        site->frames[n++] = in_runner(frames[i]);
}

static struct site *find_site(uint64_t hash, const char *call, uint32_t n_errnos, const uintptr_t frames[SITE_DEPTH]) {
        for (uint32_t i = 0; i < SITES_MAX; i++) {
                struct site *site = &points->sites[(hash + i) % SITES_MAX];
                uint64_t found = atomic_load(&site->hash);

                if (found == 0 && atomic_compare_exchange_strong(&site->hash, &found, hash)) {
                        site->call = (const char *)in_runner((uintptr_t)call);
                        site->n_errnos = n_errnos;
                        note_frames(site, frames);
                        return site;
                }
                if (found == hash)
                        return site;
        }
        atomic_fetch_add(&points->n_unstored, 1);
        return NULL;
}

static int fail_at(const char *call, const int *errnos, uint32_t n_errnos, const uintptr_t frames[SITE_DEPTH]) {
        uint64_t hash = hash_of(call, frames);
        struct site *site = find_site(hash, call, n_errnos, frames);
        uint32_t n = site ? atomic_fetch_add(&site->n, 1) + 1 : 0;
        int failed = 0;

        if (hash == points->target && n == points->occurrence) {
                struct timespec now;

                clock_gettime(CLOCK_MONOTONIC, &now);
                atomic_store(&points->hit_ns, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
                atomic_store(&points->hit, true);
                failed = errnos[points->idx_errno % n_errnos];
        } else if (points->from_then_on && atomic_load(&points->hit)) {
                failed = errnos[0];
        }
        if (failed)
                atomic_fetch_add(&points->n_failed, 1);
        return failed;
}

static _Thread_local bool inside; /* what a point needs itself does not count */

static bool counts(void) {
        return points && !points_exempt && !inside && atomic_load_explicit(&points->armed, memory_order_relaxed);
}

int fault_point(const char *call, const int *errnos, uint32_t n_errnos, const void *address, const void *frame) {
        uintptr_t frames[SITE_DEPTH];
        int failed;

        if (!counts())
                return 0;
        inside = true;
        collect((uintptr_t)address, frame, frames);
        failed = fail_at(call, errnos, n_errnos, frames);
        inside = false;
        return failed;
}

int fault_point_below(const char *call, const int *errnos, uint32_t n_errnos, const void *address) {
        uintptr_t frames[SITE_DEPTH + 1] = { 0 };
        int failed;

        if (!counts())
                return 0;
        inside = true;
        collect((uintptr_t)address, NULL, frames);
        failed = fail_at(call, errnos, n_errnos, frames + 1); /* without the library's own */
        inside = false;
        return failed;
}
