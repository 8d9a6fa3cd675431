/* base/machine/mapped.h: mapped files that others may cut short while they are read.
 *
 * An access beyond the new end of a file, or on a disk that has failed, raises SIGBUS. These functions turn that into
 * an error. The first call installs the process's SIGBUS handler; a SIGBUS anywhere else ends the process as before.
 * Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Copies out of a mapping. Returns 0, or -EIO if the file does not have these bytes any more: then some of them may
 * have been copied. Waits for the disk if they are not in memory. */
int mapped_copy(void *into, const void *from, size_t n_bytes);

/* Is this byte still there? It is, unless the file was cut before the page that holds it. */
bool mapped_is_there(const void *byte);

/* Are all these bytes in memory at this moment? Quick: a system call of less than a microsecond. */
bool mapped_is_resident(const void *bytes, size_t n_bytes);
