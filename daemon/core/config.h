/* core/config.h: the configuration file. libconfuse reads it; the rows of settings define its keys. */
#pragma once

#include <stdio.h>

#include "daemon/base/settings.h"
#include "daemon/core/dataset_settings.h"

#define CONFIG_DEFAULT_PATH "/etc/dataloaderd/dataloaderd.conf"

struct config {
        struct settings settings;
        struct dataset_setting *datasets;
        size_t n_datasets;
};

/* Reads and checks a file; fills in defaults. Returns 0; -EINVAL or the errno of opening it, `why` naming file,
 * line, key and what is allowed. */
int config_read(const char *path, struct config *ret_config, struct why *why);

/* Takes an empty one. */
void config_fini(struct config *config);

/* Writes a file with every key, its default and what its row says, all as comments: config/dataloaderd.conf. */
void config_print(FILE *out);
