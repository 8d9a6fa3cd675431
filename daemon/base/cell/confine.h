/* base/cell/confine.h: a process gives up all that its work does not need, for ever.
 *
 * Afterwards it can compute, take memory up to a limit, and talk through the descriptors that it has. It cannot open a
 * file or a socket, start a process or a thread, trace or signal another process, or make memory executable: the kernel
 * refuses the calls (seccomp, with a list of what is allowed). Calls by which a library looks for a file fail with
 * EPERM, so that the library goes on without it. Any other call ends the process. */
#pragma once

#include <stdint.h>

#include "proto/base/why.h"

/* Closes all descriptors but 0, 1 and 2; no core dumps, no files, no further descriptors to speak of; ends with the
 * thread that started it. Call it first of all. */
void confine_begin(void);

/* Gives up the rest. `data_bytes`: memory of its own that it may take from now on; 0: any. -ENOSYS or what the kernel
 * says, with what to do: then nothing is confined. There is one thread. */
int confine(uint64_t data_bytes, struct why *why);
