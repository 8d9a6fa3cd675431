/* data/formats/items/litdata_convert.h: what `prepare = "convert"` does to chunks of LitData: they are decompressed, as
 * a whole, in batches or item by item. */
#pragma once

#include "daemon/data/format.h"

extern const struct format_conversion LITDATA_CONVERSIONS[];
