/* lib/orders/client_making.h: where an order is made outside of the daemon: memory of this process, and nobody waits for a part of
 * it. */
#pragma once

#include "proto/order/making/making.h"

/* Fills in all functions; go_on() always wants more. */
void dli_making_begin(struct dlp_making *making);
