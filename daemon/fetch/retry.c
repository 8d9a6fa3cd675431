#include "daemon/fetch/retry.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "daemon/fetch/late/curl_late.h"
#include "proto/base/clock.h"

#define SECOND_NS     1000000000ull
#define FIRST_NS      (SECOND_NS / 4)
#define AFTER_SECONDS (1ull << 32) /* Retry-After above this is read as this */

uint64_t retry_pause_ns(uint32_t n_failed, uint64_t random) {
        uint64_t limit_ns = RETRY_PAUSE_MAX_S * SECOND_NS;

        if (n_failed < 8 && FIRST_NS << (n_failed ? n_failed - 1 : 0) < limit_ns)
                limit_ns = FIRST_NS << (n_failed ? n_failed - 1 : 0);
        return random % (limit_ns + 1);
}

bool retry_after_ns(const char *retry_after, const char *date, uint64_t *ret_pause_ns) {
        time_t from, until;
        uint64_t seconds;

        if (!retry_after || !*retry_after)
                return false;
        if (strspn(retry_after, "0123456789") == strlen(retry_after)) {
                seconds = strtoull(retry_after, NULL, 10);
                *ret_pause_ns = (seconds < AFTER_SECONDS ? seconds : AFTER_SECONDS) * SECOND_NS;
                return true;
        }

        until = curl_getdate(retry_after, NULL);
        if (until < 0)
                return false;
        from = date && *date ? curl_getdate(date, NULL) : -1;
        if (from < 0)
                from = time(NULL);
        seconds = until > from ? (uint64_t)until - (uint64_t)from : 0;
        *ret_pause_ns = (seconds < AFTER_SECONDS ? seconds : AFTER_SECONDS) * SECOND_NS;
        return true;
}

uint64_t retry_random(void) {
        uint64_t random;

        if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
                random = clock_now_ns();
        return random;
}
