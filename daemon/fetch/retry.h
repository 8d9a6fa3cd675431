/* fetch/retry.h: how long to wait before something is tried again.
 *
 * Exponential backoff with full jitter (M. Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015): the
 * n-th pause is anywhere between 0 and 0.25 s x 2^(n-1), 20 s at most, so that nodes that failed together do not come
 * back together. Eight tries wait half a minute at most in all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RETRY_PAUSE_MAX_S    20u
#define RETRY_AFTER_MAX_S    120u         /* a server that asks for longer is not waited for */
#define RETRY_PROGRESS_BYTES (256u << 10) /* a try that got so far does not count as one */

/* The pause after the n_failed-th failure (from 1). `random`: uniform, 64 bits. */
uint64_t retry_pause_ns(uint32_t n_failed, uint64_t random);

/* What Retry-After says, in ns: seconds, or a date that is counted from `date` (the same answer's Date header; "" or
 * NULL: from this machine's clock). False: it says nothing that can be read. */
bool retry_after_ns(const char *retry_after, const char *date, uint64_t *ret_pause_ns);

uint64_t retry_random(void); /* from the kernel: nothing is tried so often that this would cost */
