/* top/top_record.h: rates for programs. */
#pragma once

#include <cjson/cJSON.h>

#include "client/dlctl/top/shown.h"

/* A new record of the node, its jobs as `items` has them, and of the datasets with something to tell. */
cJSON *top_record(const struct rates *rates, const struct items *items);
