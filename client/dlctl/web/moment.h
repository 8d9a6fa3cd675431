/* web/moment.h: one second of history as text: the counters that change, of the daemon, each job and each rank. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/dlctl/diagnose/jobs_seen.h"
#include "client/dlctl/web/piece.h"
#include "proto/frame.h"

/* A new piece: an object of JSON. */
struct piece *moment_describe(uint64_t sequence, uint64_t unix_ms, const Dlp__StatusReply *status,
                              const struct jobs_seen *jobs);
