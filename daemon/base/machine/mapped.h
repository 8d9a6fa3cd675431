/* base/machine/mapped.h: files that are mapped, which others may cut short while they are read.
 *
 * What lies beyond the new end of a file, or on a disk that has failed, raises SIGBUS where it is touched. These
 * functions make an error of that. The first of them to be called takes the process's SIGBUS handler; a SIGBUS anywhere
 * else ends the process as before. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Copies out of a mapping. Returns 0, or -EIO if the file does not have these bytes any more: then some of them may
 * have been copied. Waits for the disk if they are not in memory. */
int mapped_copy(void *into, const void *from, size_t n_bytes);

/* Is this byte still there? It is where the file was not cut before the page that holds it. */
bool mapped_is_there(const void *byte);

/* Are all of these bytes in memory? An answer of the moment. Quick: a system call of less than a microsecond. */
bool mapped_is_resident(const void *bytes, size_t n_bytes);
