/* core/dataset_settings.h: what the configuration says of a dataset. Keys that are the same whatever its format is have
 * rows in dataset_rows.h, as settings have; of which the members of the struct are made. */
#pragma once

#include "daemon/base/machine/groups.h"
#include "daemon/base/settings.h"

/* Texts are never NULL once it is complete. */
struct dataset_setting {
        char *name;
        char *options;        /* keys of formats: lines "KEY=VALUE" (data/format_options.h) */
        struct groups groups; /* of `allow`, looked up */
#define SETTING(key, type, ...) SETTING_IS_##type key;
#include "daemon/core/dataset_rows.h"
};

enum {
        N_DATASET_SETTINGS = 0
#define SETTING(key, type, ...) +1
#include "daemon/core/dataset_rows.h"
};

extern const struct setting DATASET_SETTINGS[N_DATASET_SETTINGS];

/* Takes what is said of a key, which has a row here or in a format. -EINVAL naming it; -ENOMEM. */
int dataset_setting_take(struct dataset_setting *dataset, const char *key, const char *text, struct why *why);

/* Fills in the defaults of a dataset whose name and path are set, and looks its groups up, which may block. It also
 * checks that its settings are consistent: -EINVAL naming the key. */
int dataset_setting_complete(struct dataset_setting *dataset, struct why *why);

void dataset_setting_fini(struct dataset_setting *dataset);
