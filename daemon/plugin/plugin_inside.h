/* plugin/plugin_inside.h: a cell that runs a plug-in (base/cell/inside.h). */
#pragma once

#include "daemon/base/cell/inside.h"

#define PLUGIN_KIND "plugin" /* of cell */

/* The functions of struct cell_kind. */
int plugin_prepare(const void *setup, size_t n_bytes, uint64_t *ret_data_bytes, struct why *why);
size_t plugin_order(const void *order, size_t n_bytes, void *answer, int *ret_result);
