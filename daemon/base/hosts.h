/* base/hosts.h: hosts as they are configured: names or addresses with blanks or commas between them. They become
 * words of a command line, and none of them an option. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"

/* The next host of a list. Returns 1 with its place in the text and its length, and moves *text past it; 0 at the
 * end; -EINVAL with `why` for what is not a host. */
int hosts_next(const char **text, const char **ret_host, size_t *ret_n_bytes, struct why *why);

#define HOSTS_HOST_SIZE 256u

/* The next "host", "host:port", ":port" or "[IPv6 address]:port" of a list; the brackets are left out. Port 0: it says
 * none. As hosts_next(). */
int hosts_next_place(const char **text, char ret_host[HOSTS_HOST_SIZE], uint16_t *ret_port, struct why *why);
