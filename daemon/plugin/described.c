/* Plug-ins that are loaded elsewhere: their tables, and what their steps were said to deliver. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/plugin/plugin.h"
#include "proto/base/cleanup.h"

static void described_plugins_freep(struct plugins **plugins) {
        plugins_free(*plugins);
}

static int described_describe(struct plugins *plugins, const struct plugin_table *table) {
        struct plugin *plugin = &plugins->list[plugins->n];

        plugin->table = malloc(sizeof(*table));
        if (!plugin->table)
                return -ENOMEM;
        *plugin->table = *table;
        memcpy(plugin->name, table->name, sizeof(plugin->name));
        plugin->described = plugins;
        pthread_mutex_init(&plugin->lock, NULL);
        plugins->n++;
        return 0;
}

int plugins_describe(const struct plugin_table *tables, uint32_t n_tables, const struct dlplugin_form *outputs,
                     uint32_t n_outputs, struct plugins **ret_plugins) {
        _cleanup_(described_plugins_freep) struct plugins *plugins = calloc(1, sizeof(*plugins));
        int r = 0;

        if (!plugins)
                return -ENOMEM;
        plugins->list = calloc(n_tables + 1, sizeof(*plugins->list));
        plugins->outputs = calloc(n_outputs + 1, sizeof(*outputs));
        if (!plugins->list || !plugins->outputs)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_outputs; i++)
                plugins->outputs[i] = outputs[i];
        plugins->n_outputs = n_outputs;
        for (uint32_t i = 0; i < n_tables && r == 0; i++)
                r = described_describe(plugins, &tables[i]);
        if (r == 0)
                *ret_plugins = TAKE_PTR(plugins);
        return r;
}
