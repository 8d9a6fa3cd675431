/* ctl/users/authority.h: does a process have on this machine what its user promises?
 *
 * The kernel gives the number of a peer's user, and root in a container mostly is number 0 for us as well. It may also
 * become any other user and enter any group. What such a process lacks is seen in /proc: it lives in another user
 * namespace, or the set of capabilities that it may ever have does not hold those that make root powerful. Whoever may
 * administer must be free of both, and root must have these capabilities.
 *
 * What cannot be seen is not believed: a process of a pid namespace that is not ours, or a hidden /proc. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/machine/machine_process.h"

struct authority {
        bool is_ours; /* it lives in our user namespace, and nothing keeps it from becoming root */
        bool is_root; /* and it has root's capabilities now */
};

/* Of a process that has connected. A few system calls on /proc, which do not block. One thread. */
struct authority authority_of(const struct process *process);

/* The same from the text of its /proc/PID/status, if `needed` are the capabilities that make root powerful. */
struct authority authority_parse(const char *status, uint64_t needed);

/* Are processes of other users seen here at all? */
bool authority_is_seen(void);
