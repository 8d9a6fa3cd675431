/* dlctl/orders/dlctl_made.h: the order of a sampler's text, made here, with columns out of files. */
#pragma once

#include "client/dlctl/dlctl_options.h"
#include "proto/base/shown/progress.h"
#include "proto/order/making/order_text.h"

/* As the options give it. */
struct made_wish {
        const char *sampler;
        const struct option_list *columns; /* NAME=FILE */
        const struct option_list *parts;   /* NAME=SAMPLES */
        struct dlp_sampler_terms base;
        uint32_t batch_size;
};

struct made {
        struct dlp_order order;
        bool is_batch; /* a unit is a whole batch */
        struct dlp_making making;
        struct dlp_pace pace; /* how far it is, for a terminal */
};

/* Makes the order. Returns EXIT_DONE, or an exit code after a message. Free it with made_free() in any case; `made`
 * begins as zeroes. */
int made_make(const struct made_wish *wish, struct made *made);
void made_free(struct made *made);
