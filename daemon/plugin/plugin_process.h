/* plugin/plugin_process.h: the processes of a plug-in, which are cells (base/cell/cell.h). Private to this floor.
 *
 * They keep the daemon's rights, since the plug-in may need files and threads. A process works on one question at a
 * time, while the thread that asked waits, so that together they take one CPU. */
#pragma once

#include "daemon/base/cell/cell.h"
#include "daemon/plugin/library.h"

struct plugin;

/* Starts a process and asks what the plug-in says of itself. Errors as plugin_ask(), and -ENOEXEC: it cannot be loaded;
 * `why` continues "the plug-in ". */
int plugin_describe(const struct plugin *plugin, struct cell *cell, struct plugin_table *ret_table, struct why *why);

/* Asks, after starting the process if it does not run. The process may only read the input; it can write into the
 * output at any time. NULL: the question has none. 0: there is an answer, which may be an error. Else the errors of
 * cell_ask(), or starting it failed. `why` continues "the plug-in ". */
int plugin_ask(const struct plugin *plugin, struct cell *cell, const struct plugin_request *request,
               const struct cell_area *input, const struct cell_area *output, struct plugin_reply *ret_reply,
               struct why *why);
