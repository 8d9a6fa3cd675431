/* fetch/origin/hub_pin.h: the commit that a revision of a hub's repository is at. What is fetched is all of one commit,
 * whatever is pushed to the branch meanwhile. */
#pragma once

#include "daemon/fetch/origin/origin_private.h"

#define HUB_COMMIT_BYTES 40u

/* Makes the run's URL name the commit. A repository that has another name by now is refused with that name. Blocks for
 * a request. `ret_text` is the URL; the caller's (free), while the run lasts. As http_get(). */
int hub_pin(struct origin_run *run, char **ret_text, struct why *why);

/* What http_get() said of a request to the hub's API, without its address, which nobody has written. */
const char *hub_failure(const struct why *why);
