/* plugin/plugin_messages.h: orders to a cell of a plug-in, and its answers. Private to this floor. */
#pragma once

#include <limits.h>

#include "daemon/base/cell/cell_messages.h"
#include "daemon/plugin/library.h"
#include "daemon/plugin/plugin_inside.h"

struct plugin_setup {
        char name[DLPLUGIN_NAME_MAX];
        char path[PATH_MAX]; /* of its file */
};

struct plugin_order {
        struct cell_head head;
        struct plugin_request request;   /* question 0: writes its struct plugin_table */
        struct cell_place input, output; /* the process may only read the first */
};

struct plugin_answer {
        struct cell_head head;
        struct plugin_reply reply;
};

_Static_assert(sizeof(struct cell_setup) + sizeof(struct plugin_setup) <= CELL_MESSAGE_MAX &&
                       sizeof(struct plugin_order) <= CELL_MESSAGE_MAX,
               "each is a packet");
