/* web/scrape.h: the daemon's metrics, for a scraper that comes over TCP.
 *
 * Each scrape asks the daemon anew, on a connection of its own, and waits for the answer, which takes a millisecond. A
 * daemon that does not answer is not asked again for some seconds, so that the page does not stand still. A scraper
 * does not keep a daemon alive that ends when nobody is connected: the connection is closed at once. */
#pragma once

#include <event2/buffer.h>
#include <stdint.h>

#include "client/dlctl/command.h"
#include "proto/base/why.h"

struct scrape {
        const struct context *context; /* says which daemon */
        uint64_t late_until_ns;        /* the daemon has not answered in time, and is left alone until then; */
        struct why late;               /* this was said */
};

/* Adds the text to `body`. Returns 0 or a negative errno with a sentence. */
int scrape_take(struct scrape *scrape, struct evbuffer *body, struct why *why);
