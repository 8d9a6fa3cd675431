/* pipeline/memory/page_cache.h: are packed samples read through the page cache or past it?
 *
 * Through it, each sample is copied once more (a few microseconds, compared with a millisecond of decoding), and from
 * the second epoch on it comes from memory, if the dataset fits. If it does not fit, little of it is still cached, the
 * cache's own work costs several times what a read past it does, and other programs' data is evicted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"

/* Is a packed dataset of `n_bytes` to be read past it? `wish` is the setting page_cache: "auto" (through it if the
 * dataset fits), "use" or "bypass". `available`: memory_available(); half of it is for a dataset,
 * the rest for trainers that have not started yet. `ret_why` gives the reason. */
bool page_cache_is_bypassed(const char *wish, uint64_t n_bytes, uint64_t available, struct why *ret_why);
