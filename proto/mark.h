/* proto/mark.h: the page that a worker process shares with the daemon: which of its orders it has begun.
 *
 * A process answers several orders at once where its functions are quick. If it ends in between, the daemon needs to
 * know which of them may be half changed, and over which one the process ended. The process writes the number of an
 * order before it begins with it; that is one store. The daemon reads it when the process has ended, and need not
 * trust it: a wrong number only makes the process's own job read samples again, or blame the wrong one.
 *
 * Memory order: the mark is stored before the sample is touched (release, and a fence); the daemon reads it after the
 * end of the process. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define DLP_MARK_BYTES 4096u

struct dlp_mark {
        _Atomic uint64_t begun; /* number of the order; 0: none yet */
};
