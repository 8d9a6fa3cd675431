#include "client/lib/orders/client_making.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

/* Checked here, because the kernel would promise more memory than it has and then kill some process. */
static void *allocate(struct dlp_making *making, uint64_t n_bytes) {
        uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        void *bytes = n_bytes <= memory
                              ? mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                              : MAP_FAILED;

        if (bytes != MAP_FAILED)
                return bytes;
        why_set(making->why, -ENOMEM, "sampler: needs %" PRIu64 " MiB of memory, this machine has %" PRIu64 " MiB",
                n_bytes >> 20, memory >> 20);
        return NULL;
}

static void release(struct dlp_making *making, void *memory, uint64_t n_bytes) {
        (void)making;
        if (memory)
                munmap(memory, n_bytes);
}

static bool go_on(struct dlp_making *making, uint64_t n_done, uint64_t n_total) {
        (void)making;
        (void)n_done;
        (void)n_total;
        return true;
}

static void publish(struct dlp_making *making, const struct dlp_order *order, uint64_t n_final) {
        (void)making;
        (void)order;
        (void)n_final;
}

void dli_making_begin(struct dlp_making *making) {
        *making = (struct dlp_making){ .allocate = allocate, .release = release, .go_on = go_on, .publish = publish };
}
