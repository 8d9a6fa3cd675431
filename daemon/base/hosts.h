/* base/hosts.h: hosts as they are configured: names or IPv4 addresses with blanks or commas between them. They
 * become words of a command line, and none of them an option. */
#pragma once

#include <stddef.h>

#include "proto/base/why.h"

/* The next host of a list. Returns 1 with its place in the text and its length, and moves *text past it; 0 at the
 * end; -EINVAL with `why` for what is not a host. */
int hosts_next(const char **text, const char **ret_host, size_t *ret_n_bytes, struct why *why);
