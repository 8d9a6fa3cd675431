/* codec/masks/mask_name.h: which fields are masks. No format says so, hence their names do. */
#pragma once

#include <stdbool.h>

/* Is one of its words, between dots, dashes, slashes and underscores, "mask", "masks", "seg" or "segmentation"? */
bool mask_is_name(const char *name);
