/* web/site.h: what each path gives: the page, the document that it shows, or the metrics. */
#pragma once

#include "client/dlctl/web/page.h"
#include "client/dlctl/web/scrape.h"
#include "client/dlctl/web/server.h"
#include "client/dlctl/web/view.h"
#include "client/dlctl/web/watch.h"

struct site {
        struct page page;
        struct view *view;
        struct watch *watch;
        struct scrape scrape;
};

/* For struct server_options; `arg` is the site. */
void site_serve(void *arg, const struct request *request, struct visitor *visitor);
