/* core/path_dataset.h: a dataset that an attach names by its path: the keys of a dataset section that make sense for it. */
#pragma once

#include "daemon/core/dataset_settings.h"
#include "daemon/ctl/server.h"

/* Makes an entry of the catalog for it, whose name is that of catalog_path_name(). The options ("KEY=VALUE") are its
 * format and keys of formats. -EINVAL naming the key, -ENOMEM, -ENOSPC: too many are in use. Main thread. */
int path_dataset_add(struct catalog *catalog, const struct path_wish *wish, char ret_name[DLP_DATASET_MAX],
                     struct why *why);
