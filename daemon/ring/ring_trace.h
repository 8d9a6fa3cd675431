/* ring/ring_trace.h: a ring's slots and waits as events of a trace. */
#pragma once

#include "daemon/ring/batch_ring.h"

/* Writes the events of a slot that was published; `is_back`: the client has released it. With ring->lock. */
void ring_trace_slot(struct ring *ring, const struct slot *slot, bool is_back);
