/* web/moment.h: one second of history as text: the counters that change, of the daemon, each job and each rank. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/dlctl/glance.h"
#include "client/dlctl/web/piece.h"

/* A new piece: an object of JSON. */
struct piece *moment_describe(uint64_t sequence, uint64_t unix_ms, const struct glance *glance);
