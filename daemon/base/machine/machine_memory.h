/* base/machine/machine_memory.h: how much memory there is for us, page cache included. */
#pragma once

#include <stdint.h>

/* Bytes that are available now without swapping (MemAvailable, which counts the page cache as free), or fewer if our
 * control group or one above it allows less (cgroup v2: memory.max, memory.high). 0 if unknown. Reads a few files of
 * /proc and /sys: about 100 us. */
uint64_t memory_available(void);

/* The most that our control group and those above it may use (cgroup v2: memory.max, memory.high); UINT64_MAX: no
 * limit, or unknown. */
uint64_t memory_of_our_group(void);

/* The most that this process may ever use: of the machine's memory, what those groups allow. */
uint64_t memory_of_ours(void);

/* ---- internal functions, for tests --------------------------------------------------------------------------- */

/* /proc/meminfo: the line of MemAvailable, in bytes; 0 if there is none. */
uint64_t memory_parse_available(const char *text);

/* The smallest limit of the group `path` ("/a/b") and those above it below `mount_point`; UINT64_MAX if there is
 * none. */
uint64_t memory_group_limit(const char *mount_point, const char *path);
