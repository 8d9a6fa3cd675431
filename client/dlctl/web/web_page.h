/* web/web_page.h: the page, one file with style and script in it, as it was at build time.
 *
 * Its policy (Content-Security-Policy) allows this style, this script by their digests, and asking the own server: what
 * a dataset, a job or a file is called can never run. */
#pragma once

#include "client/dlctl/web/piece.h"

struct page {
        struct piece *text;
        char policy[512];
};

void page_make(struct page *page);
void page_free(struct page *page);
