#include "daemon/plugin/plugins.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/plugin/plugin.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"

#define SEPARATORS " \t\r\n,"
#define NAMES_MAX  512u /* of a list in a message */

/* ---- loading -------------------------------------------------------------------------------------------------------
 */

/* Before it is loaded: if the file is replaced in between, it is not the one that was found, and not used. */
static int plugins_digest_file(struct plugin *plugin, struct why *why) {
        _cleanup_(closep) int fd = open(plugin->path, O_RDONLY | O_CLOEXEC);
        EVP_MD_CTX *context = fd >= 0 ? EVP_MD_CTX_new() : NULL;
        bool is_fine = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL);
        unsigned char digest[EVP_MAX_MD_SIZE], bytes[65536];
        ssize_t n = 0;

        while (is_fine && (n = read(fd, bytes, sizeof(bytes))) > 0)
                is_fine = EVP_DigestUpdate(context, bytes, (size_t)n);
        is_fine = is_fine && n == 0 && EVP_DigestFinal_ex(context, digest, NULL);
        EVP_MD_CTX_free(context);
        if (!is_fine)
                return why_set(why, -EIO, "cannot be read: %s", plugin->path);
        for (size_t i = 0; i < 32; i++)
                snprintf(plugin->digest + 2 * i, 3, "%02x", digest[i]);
        return 0;
}

static int plugin_load(struct plugins *plugins, struct plugin *plugin, struct why *why) {
        int r = library_find(plugins->folders, plugin->name, &plugin->path, &plugin->status, why);

        if (r < 0)
                return r;
        r = plugins_digest_file(plugin, why);
        if (r < 0)
                return r;
        plugin->table = calloc(1, sizeof(*plugin->table));
        if (!plugin->table)
                return why_errno(why, -ENOMEM, "cannot be loaded");
        return plugin_describe(plugin, &plugin->cell, plugin->table, why);
}

static void plugin_unload(struct plugin *plugin) {
        cell_end(&plugin->cell);
        cell_end(&plugin->shared);
        free(plugin->table);
        plugin->table = NULL;
}

/* Returns -ENOMEM, or 0 also if it is refused. */
static int plugin_begin(struct plugins *plugins, struct plugin *plugin, struct why *why) {
        struct why what;
        int r = plugin_load(plugins, plugin, &what);

        if (r == 0) {
                log_info("plugin", "%s: %u steps file=%s", plugin->name, plugin->table->n_steps, plugin->path);
                return 0;
        }
        plugin_unload(plugin);
        if (asprintf(&plugin->refusal, "the plug-in %s %s", plugin->name, what.text) < 0) {
                plugin->refusal = NULL;
                return why_errno(why, -ENOMEM, "plug-ins");
        }
        log_error("plugin", "%s; pipelines that name it are refused", plugin->refusal);
        return 0;
}

static int plugins_add(struct plugins *plugins, const struct settings *settings, struct cells *cells, const char *name,
                       size_t n, struct why *why) {
        struct plugin *plugin = &plugins->list[plugins->n];

        for (size_t i = 0; i < plugins->n; i++)
                if (strlen(plugins->list[i].name) == n && memcmp(plugins->list[i].name, name, n) == 0)
                        return 0;
        pthread_mutex_init(&plugin->lock, NULL);
        plugin->cells = cells;
        plugin->timeout_s = (uint32_t)settings->plugin_timeout;
        plugin->is_stopping = &plugins->is_stopping;
        plugins->n++;
        if (!plugin_is_name(name, n)) {
                snprintf(plugin->name, sizeof(plugin->name), "%.*s", (int)n, name);
                if (asprintf(&plugin->refusal,
                             "plugins: \"%.*s\" is not the name of a plug-in: letters, digits and \"_\"", (int)n,
                             name) < 0)
                        plugin->refusal = NULL;
                log_error("plugin", "%s", plugin->refusal ? plugin->refusal : "out of memory");
                return plugin->refusal ? 0 : why_errno(why, -ENOMEM, "plug-ins");
        }
        memcpy(plugin->name, name, n);
        return plugin_begin(plugins, plugin, why);
}

static size_t count_names(const char *names) {
        size_t n = 0;

        for (const char *at = names + strspn(names, SEPARATORS); *at; n++) {
                at += strcspn(at, SEPARATORS);
                at += strspn(at, SEPARATORS);
        }
        return n;
}

static void plugins_freep(struct plugins **plugins) {
        plugins_free(*plugins);
}

int plugins_new(const struct settings *settings, struct cells *cells, struct plugins **ret_plugins, struct why *why) {
        _cleanup_(plugins_freep) struct plugins *plugins = calloc(1, sizeof(*plugins));
        size_t n = count_names(settings->plugins);
        int r = 0;

        if (!plugins)
                return why_errno(why, -ENOMEM, "plug-ins");
        plugins->folders = strdup(settings->plugin_dirs);
        plugins->list = calloc(n > 0 ? n : 1, sizeof(*plugins->list));
        if (!plugins->list || !plugins->folders)
                return why_errno(why, -ENOMEM, "plug-ins");
        for (const char *at = settings->plugins + strspn(settings->plugins, SEPARATORS); *at && r == 0;) {
                size_t n_name = strcspn(at, SEPARATORS);

                r = plugins_add(plugins, settings, cells, at, n_name, why);
                at += n_name;
                at += strspn(at, SEPARATORS);
        }
        if (r == 0)
                *ret_plugins = TAKE_PTR(plugins);
        return r;
}

void plugins_stop(struct plugins *plugins) {
        if (plugins)
                atomic_store_explicit(&plugins->is_stopping, true, memory_order_relaxed);
}

void plugins_free(struct plugins *plugins) {
        if (!plugins)
                return;
        for (size_t i = 0; i < plugins->n; i++) {
                plugin_unload(&plugins->list[i]);
                pthread_mutex_destroy(&plugins->list[i].lock);
                free(plugins->list[i].path);
                free(plugins->list[i].refusal);
        }
        free(plugins->list);
        free(plugins->folders);
        free(plugins->outputs);
        free(plugins);
}

/* ---- finding -------------------------------------------------------------------------------------------------------
 */

size_t plugins_count(const struct plugins *plugins) {
        return plugins ? plugins->n : 0;
}

const struct plugin *plugins_at(const struct plugins *plugins, size_t idx) {
        return &plugins->list[idx];
}

const char *plugin_name(const struct plugin *plugin) {
        return plugin->name;
}

const char *plugin_refusal(const struct plugin *plugin) {
        return plugin->refusal;
}

const struct plugin_table *plugin_table(const struct plugin *plugin) {
        return plugin->table;
}

static void list_name(char list[NAMES_MAX], const char *name) {
        size_t n = strlen(list);

        snprintf(list + n, NAMES_MAX - n, "%s%s", n > 0 ? ", " : "", name);
}

int plugins_find(struct plugins *plugins, const char *name, size_t n, struct plugin **ret_plugin, struct why *why) {
        char names[NAMES_MAX] = "";
        struct nearest nearest;

        nearest_begin(&nearest, name, n);
        for (size_t i = 0; i < plugins_count(plugins); i++) {
                struct plugin *plugin = &plugins->list[i];

                if (strlen(plugin->name) == n && memcmp(plugin->name, name, n) == 0) {
                        if (plugin->refusal)
                                return why_set(why, -EINVAL, "%s", plugin->refusal);
                        *ret_plugin = plugin;
                        return 0;
                }
                if (!plugin->refusal) {
                        nearest_offer(&nearest, plugin->name);
                        list_name(names, plugin->name);
                }
        }
        if (!names[0])
                return why_set(why, -EINVAL,
                               "there is no plug-in \"%.*s\": this daemon has none; the administrator names them in "
                               "plugins of dataloaderd.conf",
                               (int)n, name);
        return why_set(why, -EINVAL, "there is no plug-in \"%.*s\"%s; this daemon has %s", (int)n, name,
                       nearest_hint(&nearest), names);
}

int plugin_find_step(const struct plugin *plugin, const char *name, size_t n, uint32_t *ret_idx, struct why *why) {
        char names[NAMES_MAX] = "";
        struct nearest nearest;

        nearest_begin(&nearest, name, n);
        for (uint32_t i = 0; i < plugin->table->n_steps; i++) {
                const char *step = plugin->table->steps[i].name;

                if (strlen(step) == n && memcmp(step, name, n) == 0) {
                        *ret_idx = i;
                        return 0;
                }
                nearest_offer(&nearest, step);
                list_name(names, step);
        }
        return why_set(why, -EINVAL, "the plug-in %s has nothing called \"%.*s\"%s; it has %s", plugin->name, (int)n,
                       name, nearest_hint(&nearest), names[0] ? names : "none");
}
