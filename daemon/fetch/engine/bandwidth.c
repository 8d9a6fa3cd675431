#include "daemon/fetch/engine/bandwidth.h"

#include <stddef.h>

#define SECOND_NS 1000000000ull
#define SAVED_NS  (SECOND_NS / 20) /* what was not used for longer is lost: after an idle hour there is no burst */

void bandwidth_init(struct bandwidth *bandwidth, uint64_t bytes_per_s) {
        *bandwidth = (struct bandwidth){ .bytes_per_s = bytes_per_s };
        TAILQ_INIT(&bandwidth->held);
}

uint64_t bandwidth_wait_ns(const struct bandwidth *bandwidth, uint64_t now_ns) {
        return bandwidth->level_ns > now_ns ? bandwidth->level_ns - now_ns : 0;
}

void bandwidth_take(struct bandwidth *bandwidth, uint64_t n_bytes, uint64_t now_ns) {
        if (bandwidth->bytes_per_s == 0)
                return;
        if (bandwidth->level_ns + SAVED_NS < now_ns)
                bandwidth->level_ns = now_ns - SAVED_NS;
        bandwidth->level_ns += (uint64_t)((double)n_bytes * SECOND_NS / (double)bandwidth->bytes_per_s);
}
