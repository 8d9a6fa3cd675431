#include "client/dlctl/web/scrape.h"

#include <errno.h>

#include "client/dlctl/dlctl_metrics.h"
#include "client/dlctl/inquiry/inquiry_reach.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/version.h"

#define ANSWER_MS 1000
#define LATE_NS   5000000000ull

int scrape_take(struct scrape *scrape, struct evbuffer *body, struct why *why) {
        struct dli_connection connection = { .socket = -1, .sent_fd = -1 };
        _cleanup_(freep) char *text = NULL;
        uint64_t now_ns = clock_now_ns();
        enum reach reach; /* not used */
        size_t n;
        int r;

        if (now_ns < scrape->late_until_ns) {
                *why = scrape->late;
                return -ETIMEDOUT;
        }
        r = reach_try(scrape->context, "dlctl web " DLP_FULL_VERSION, &connection, why, &reach);
        if (r == 0)
                r = metrics_fetch(&connection, ANSWER_MS, why, &text, &n);
        dli_connection_close(&connection);
        if (r == -ETIMEDOUT) {
                scrape->late_until_ns = clock_now_ns() + LATE_NS;
                scrape->late = *why;
        }
        if (r == 0 && evbuffer_add(body, text, n) < 0)
                r = why_set(why, -ENOMEM, "no memory");
        return r;
}
