/* core/config.h: the configuration file -> settings. libconfuse reads it; the table of settings defines its keys. */
#pragma once

#include "daemon/core/settings.h"

#define CONFIG_DEFAULT_PATH "/etc/dataloaderd/dataloaderd.conf"

/* Reads and checks a file; fills in defaults. Returns 0; -EINVAL or the errno of opening it, `why` naming file,
 * line, key and what is allowed. */
int config_read(const char *path, struct settings *ret_settings, struct why *why);
