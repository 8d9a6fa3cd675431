/* dlctl/staging/stage_cache.h: has the daemon bring a dataset that lies elsewhere into its cache. */
#pragma once

#include "client/dlctl/command.h"

/* Does a daemon that can be reached fetch this dataset of its configuration from elsewhere? Prints nothing. */
bool stage_is_of_cache(const struct context *context, const char *dataset);

/* Asks until all is here, and shows how far it is. What is interrupted goes on where it was. Returns an exit code. */
int stage_cache(const struct context *context, const char *operand);
