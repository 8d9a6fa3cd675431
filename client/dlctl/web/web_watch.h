/* web/web_watch.h: asks the daemon once a second, without ever waiting for it, and tells the view.
 *
 * One connection, one question at a time. A daemon that is away is looked for each second. It is asked whether or not
 * somebody looks, so that a page that is opened late shows the past; datasets and damaged samples only while somebody
 * does. A daemon that ends by itself when nobody is connected (idle_timeout) must not be kept alive by a page that
 * nobody looks at: if it has no jobs either, the connection is closed until somebody does. */
#pragma once

#include <event2/event.h>

#include "client/dlctl/command.h"
#include "client/dlctl/web/web_view.h"

struct watch;

/* The context says which daemon; it must outlive the watch. */
struct watch *watch_new(struct event_base *base, const struct context *context, struct view *view);
void watch_free(struct watch *watch); /* takes NULL */

/* Somebody looks at the view. */
void watch_looked(struct watch *watch);
