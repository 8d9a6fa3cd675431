/* core/path_dataset.h: a dataset that an attach names by its path: the keys of a dataset section that make sense for it. */
#pragma once

#include "daemon/core/dataset_settings.h"
#include "daemon/ctl/server.h"

/* Reads the options ("KEY=VALUE"), which are those of a section of the configuration except for the ones of staging,
 * `allow` and `weight`. The name is that of catalog_path_name(). -EINVAL naming the key, -ENOMEM. */
int path_dataset_read(const struct path_wish *wish, struct dataset_setting *ret_dataset, struct why *why);

/* The same, and an entry of the catalog for it. -ENOSPC: too many are in use. Main thread. */
int path_dataset_add(struct catalog *catalog, const struct path_wish *wish, char ret_name[DLP_DATASET_MAX],
                     struct why *why);
