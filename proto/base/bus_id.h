/* proto/base/bus_id.h: where a device is on the PCI bus, "0000:1b:00.0": domain, bus, device and function.
 *
 * It is the name of the device's folder in sysfs. Drivers write it in capitals, some with more zeros, and clients may
 * write anything. So it is read as numbers and written again, and the result never leads out of sysfs. */
#pragma once

#include <stdbool.h>

#include "proto/base/symbol.h"

#define BUS_ID_MAX 17u /* bytes, with the NUL: a domain has 4 to 8 digits */

/* Is the text such an address? Then `ret_id` has it as the kernel spells it. Takes NULL: false. */
bool bus_id_read(const char *text, char ret_id[BUS_ID_MAX]) DLP_SYMBOL(bus_id_read);
