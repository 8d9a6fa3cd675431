/* proto/base/bus_id.h: where a device is on the PCI bus, "0000:1b:00.0": domain, bus, device and function.
 *
 * The kernel names a device's folder in sysfs so. Drivers write it in capitals, some with more zeros; it also comes
 * from clients, who may write anything. So it is read as numbers and written again: what comes out never leads
 * elsewhere. */
#pragma once

#include <stdbool.h>

#include "proto/base/symbol.h"

#define BUS_ID_MAX 17u /* bytes, with the NUL: a domain has 4 to 8 digits */

/* Is it one? Then `ret_id` has it as the kernel spells it. NULL is none. */
bool bus_id_read(const char *text, char ret_id[BUS_ID_MAX]) DLP_SYMBOL(bus_id_read);
