#include "daemon/plugin/plugin_process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/plugin/plugin.h"
#include "daemon/plugin/plugin_messages.h"

#define SETTLE_TIMEOUT_S 5u /* for what the main thread waits for */

static bool plugin_process_is_over(void *userdata) {
        const _Atomic bool *is_stopping = userdata;

        return atomic_load_explicit(is_stopping, memory_order_relaxed);
}

static struct cell_patience patience(const struct plugin *plugin, uint32_t timeout_s) {
        return (struct cell_patience){ timeout_s * UINT64_C(1000000000), plugin_process_is_over, plugin->is_stopping };
}

static int start_cell(const struct plugin *plugin, struct cell *cell, struct why *why) {
        struct plugin_setup setup = { 0 };
        struct cell_terms terms = { .kind = PLUGIN_KIND,
                                    .trust = CELL_INSTALLED,
                                    .setup = &setup,
                                    .n_setup = sizeof(setup),
                                    .hello = patience(plugin, SETTLE_TIMEOUT_S) };
        struct why how;
        int r;

        if (strlen(plugin->path) >= sizeof(setup.path))
                return why_set(why, -ENAMETOOLONG, "lies too deep: %s", plugin->path);
        snprintf(setup.name, sizeof(setup.name), "%s", plugin->name);
        strcpy(setup.path, plugin->path);
        r = cell_start(cell, plugin->cells, &terms, &how);
        if (r == CELL_REFUSES)
                return why_set(why, -ENOEXEC, "%s", how.text);
        if (cell_has_failed(r))
                return why_set(why, r, "%s", how.text);
        return r < 0 ? why_set(why, r, "cannot be started in a process: %s", how.text) : 0;
}

/* It is ready when the plug-in is loaded. */
static int plugin_process_start(const struct plugin *plugin, struct cell *cell, struct why *why) {
        int r = library_is_still(plugin->path, &plugin->status, why);

        if (r == 0)
                r = start_cell(plugin, cell, why);
        if (r < 0)
                return r;
        r = library_is_still(plugin->path, &plugin->status, why);
        if (r < 0)
                cell_end(cell);
        return r;
}

static struct cell_place lend_area(struct cell *cell, const struct cell_area *area) {
        if (!area)
                return (struct cell_place){ 0 };
        cell_lend(cell, &area->memory);
        return (struct cell_place){ area->memory.number, 0, area->memory.n_bytes };
}

static int ask_within(const struct plugin *plugin, struct cell *cell, uint32_t timeout_s,
                      const struct plugin_request *request, const struct cell_area *input,
                      const struct cell_area *output, struct plugin_reply *ret_reply, struct why *why) {
        _Alignas(8) uint8_t packet[CELL_MESSAGE_MAX];
        const struct plugin_answer *answer = (const struct plugin_answer *)(const void *)packet;
        const struct cell_patience how_long = patience(plugin, timeout_s);
        struct plugin_order order = { .request = *request };
        ssize_t n = cell_pid(cell) > 0 ? 0 : plugin_process_start(plugin, cell, why);

        if (n < 0)
                return (int)n;
        order.input = lend_area(cell, input);
        order.output = lend_area(cell, output);
        n = cell_ask(cell, &order, sizeof(order), packet, &how_long, why);
        if (n >= 0 && (n != (ssize_t)sizeof(*answer) || answer->reply.result > 0))
                n = cell_reject(cell, why);
        if (n < 0)
                return (int)n;
        *ret_reply = answer->reply;
        ret_reply->text[sizeof(ret_reply->text) - 1] = '\0';
        return 0;
}

int plugin_ask(const struct plugin *plugin, struct cell *cell, const struct plugin_request *request,
               const struct cell_area *input, const struct cell_area *output, struct plugin_reply *ret_reply,
               struct why *why) {
        uint32_t timeout_s = plugin->timeout_s;

        if (request->question == PLUGIN_SETTLE && timeout_s > SETTLE_TIMEOUT_S)
                timeout_s = SETTLE_TIMEOUT_S;
        return ask_within(plugin, cell, timeout_s, request, input, output, ret_reply, why);
}

/* The table is too large for an answer. It is copied before it is looked at. */
int plugin_describe(const struct plugin *plugin, struct cell *cell, struct plugin_table *ret_table, struct why *why) {
        static const struct plugin_request DESCRIBE = { .question = 0 };
        struct cell_area area = { 0 };
        struct plugin_reply reply;
        int r = cell_area_widen(plugin->cells, "dataloaderd-plugin", sizeof(*ret_table), &area);

        if (r < 0)
                return why_errno(why, r, "%zu bytes for a plug-in", sizeof(*ret_table));
        r = ask_within(plugin, cell, SETTLE_TIMEOUT_S, &DESCRIBE, NULL, &area, &reply, why);
        if (r == 0)
                memcpy(ret_table, area.bytes, sizeof(*ret_table));
        if (r == 0 && (reply.result != 0 || !table_is_valid(ret_table)))
                r = why_set(why, -ENOEXEC, "says nonsense of itself");
        cell_area_drop(plugin->cells, &area);
        return r;
}
