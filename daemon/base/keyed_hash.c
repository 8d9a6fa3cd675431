#include "daemon/base/keyed_hash.h"

#include <sys/random.h>

#include "proto/base/clock.h"

uint64_t KEYED_HASH_KEY[2];

__attribute__((constructor)) static void choose_key(void) {
        if (getrandom(KEYED_HASH_KEY, sizeof(KEYED_HASH_KEY), GRND_NONBLOCK) != sizeof(KEYED_HASH_KEY)) {
                KEYED_HASH_KEY[0] = clock_now_ns(); /* before the kernel has any: still nobody's guess */
                KEYED_HASH_KEY[1] = (uint64_t)(uintptr_t)&KEYED_HASH_KEY * UINT64_C(0x9e3779b97f4a7c15);
        }
        KEYED_HASH_KEY[1] |= 1; /* not 0 */
}
