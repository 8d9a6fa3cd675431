/* ctl/opened/ctl_opened.h: the dataset that a request is about, for requests that need it open. */
#pragma once

#include "daemon/ctl/session.h"
#include "daemon/pipeline/catalog/catalog.h"

/* By what the daemon calls it; (*ret_entry)->open is there, and counts as used. -EBUSY with `why`: it is not ready; one
 * that has failed is tried again. Else as access_find_dataset(). Main thread. */
int opened_find(struct session *session, const char *name, struct catalog_entry **ret_entry, struct why *why);
