/* web/site.h: what each path gives: the page, the document that it shows, or the metrics. */
#pragma once

#include "client/dlctl/web/scrape.h"
#include "client/dlctl/web/web_page.h"
#include "client/dlctl/web/web_server.h"
#include "client/dlctl/web/web_view.h"
#include "client/dlctl/web/web_watch.h"

struct site {
        struct page page;
        struct view *view;
        struct watch *watch;
        struct scrape scrape;
};

/* For struct server_options; `arg` is the site. */
struct MHD_Response *site_answer(void *arg, struct MHD_Connection *request, const char *path, unsigned *ret_status);
