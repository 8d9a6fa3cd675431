/* dlctl/dlctl_metrics.h: the daemon's metrics, asked for a packet at a time. */
#pragma once

#include <stddef.h>

#include "client/lib/connection.h"

#define METRICS_BYTES_MAX (64u << 20) /* of a text; what is longer is not taken */

/* The whole text, the caller's (free), of *ret_n bytes; waits for each part, timeout_ms at most. Returns 0 or a
 * negative errno with a sentence. */
int metrics_fetch(struct dli_connection *connection, int timeout_ms, struct why *reason, char **ret_text,
                  size_t *ret_n);
