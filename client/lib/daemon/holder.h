/* lib/daemon/holder.h: who keeps a file locked, for the sentence that tells a person what to end. */
#pragma once

#include <stdbool.h>

#include "client/lib/reason.h"

/* Is there such a file, and does somebody else hold its lock (flock)? Takes the lock for a moment itself, if it is
 * free. If ret_holder is not NULL it then says "FILE is locked by process 12 (dataloaderd)", or "by another process" if
 * that one is not seen: another user's, another container's, or /proc is hidden. Then it looks at each process, which
 * takes some milliseconds. */
bool dli_is_locked(const char *path, struct why *ret_holder);
