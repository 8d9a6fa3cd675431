/* base/machine/own_io.h: what the kernel did to serve this process' reads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Bytes that were fetched from storage for this process, threads of the kernel that read for it included: what it read
 * beyond that was in the page cache. False if the kernel does not count, or does not let us see it. A small file is
 * read; any thread. */
bool own_storage_bytes(uint64_t *ret_bytes);

/* Finds it in the text of /proc/self/io. For tests. */
bool own_storage_bytes_parse(const char *text, uint64_t *ret_bytes);
