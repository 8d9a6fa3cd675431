#include "daemon/core/path_dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/format_tell.h"
#include "proto/base/cleanup.h"

/* A dataset of the configuration may be brought here, or be shared by several users; this one has no key of its own but
 * its format, and those of formats. */
static int path_dataset_take(struct dataset_setting *dataset, const char *key, const char *value, struct why *why) {
        bool is_format = strcmp(key, "format") == 0;

        if (!is_format && setting_find(DATASET_SETTINGS, N_DATASET_SETTINGS, key))
                return why_set(
                        why, -EINVAL,
                        "%s: only a dataset of the configuration has this key; leave it out, or write the dataset "
                        "into dataloaderd.conf",
                        key);
        if (!is_format && !format_option_find(key))
                return why_set(why, -EINVAL, "\"%s\" is not a key of a dataset; dataloaderd.conf(5) lists them", key);
        if (is_format && dataset->format)
                return why_set(why, -EINVAL, "%s: is given twice", key);
        return dataset_setting_take(dataset, key, value, why);
}

static int take_option(struct dataset_setting *dataset, const char *option, struct why *why) {
        const char *equals = strchr(option, '=');
        _cleanup_(freep) char *key = strndup(option, equals ? (size_t)(equals - option) : 0);

        if (!key)
                return why_errno(why, -ENOMEM, "options");
        if (!equals)
                return why_set(why, -EINVAL, "\"%s\" is not KEY=VALUE", option);
        return path_dataset_take(dataset, key, equals + 1, why);
}

/* What tells it apart from other datasets at its path, in the order of the table. */
static int name_it(struct dataset_setting *dataset, struct why *why) {
        char name[DLP_DATASET_MAX];
        _cleanup_(freep) char *text = NULL;
        bool is_told = strcmp(dataset->format, FORMAT_AUTO) == 0;
        int r;

        if (asprintf(&text, "%s%s%s%s", is_told ? "" : "format=", is_told ? "" : dataset->format, is_told ? "" : "\n",
                     dataset->options) < 0) {
                text = NULL;
                return why_errno(why, -ENOMEM, "name");
        }
        r = catalog_path_name(dataset->path, text, name, why);
        if (r < 0)
                return r;
        dataset->name = strdup(name);
        return dataset->name ? 0 : why_errno(why, -ENOMEM, "name");
}

static int path_dataset_read(const struct path_wish *wish, struct dataset_setting *ret_dataset, struct why *why) {
        struct dataset_setting dataset = { 0 };
        struct why reason;
        int r;

        r = dataset_setting_take(&dataset, "path", wish->path, &reason);
        for (size_t i = 0; i < wish->n_options && r == 0; i++)
                r = take_option(&dataset, wish->options[i], &reason);
        if (r == 0)
                r = dataset_setting_complete(&dataset, &reason);
        if (r == 0)
                r = name_it(&dataset, &reason);
        if (r < 0) {
                dataset_setting_fini(&dataset);
                return why_set(why, r, "dataset %s%s: %s", wish->path, strlen(wish->path) > 200 ? "..." : "",
                               reason.text);
        }
        *ret_dataset = dataset;
        return 0;
}

int path_dataset_add(struct catalog *catalog, const struct path_wish *wish, char ret_name[DLP_DATASET_MAX],
                     struct why *why) {
        struct dataset_setting dataset;
        struct catalog_wish entry;
        int r = path_dataset_read(wish, &dataset, why);

        if (r < 0)
                return r;
        entry = (struct catalog_wish){
                .name = dataset.name,
                .path = dataset.path,
                .format = dataset.format,
                .options = dataset.options,
                .in_blocks = wish->in_blocks,
                .follows_links = true, /* only for who may read everything that the daemon may */
        };
        r = catalog_add_path(catalog, &entry, why);
        if (r == 0)
                snprintf(ret_name, DLP_DATASET_MAX, "%s", dataset.name);
        dataset_setting_fini(&dataset);
        return r;
}
