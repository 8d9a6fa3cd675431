/* base/cell/confine.h: a cell gives up all that its work does not need, for ever.
 *
 * All cells: privileges that a program could give them, core files, which would have somebody's samples in them, and
 * their life after the thread that started them.
 *
 * One that interprets what strangers made (CELL_STRANGE) gives up the rest, too. Afterwards it can compute, take memory
 * up to a limit, and talk through the descriptors that it has. It cannot open a file or a socket, start a process or a
 * thread, trace or signal another process, or make memory executable: the kernel refuses the calls (seccomp, with a
 * list of what is allowed). Calls by which a library looks for a file fail with EPERM, so that the library goes on
 * without it. Any other call ends the process. */
#pragma once

#include <stdint.h>

#include "daemon/base/cell/cell_messages.h"
#include "proto/base/why.h"

/* Closes all descriptors but the standard ones and the channel; no core files; ends with the thread that started it.
 * CELL_STRANGE: no files, no further descriptors to speak of. CELL_INSTALLED: if memory is short, the kernel ends this
 * process before the daemon or a trainer, because what is loaded here may leak. Call it before anything is made. */
void confine_begin(enum cell_trust trust);

/* Of a CELL_STRANGE: gives up the rest. `data_bytes`: memory of its own that it may take from now on; 0: any. -ENOSYS
 * or what the kernel says, with what to do: then nothing is confined. There is one thread. */
int confine(uint64_t data_bytes, struct why *why);
