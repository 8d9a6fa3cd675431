/* codec/cell/render_inside.h: a cell that decodes (base/cell/inside.h). */
#pragma once

#include "daemon/base/cell/inside.h"

/* The functions of struct cell_kind. */
int render_prepare(const void *setup, size_t n_bytes, uint64_t *ret_data_bytes, struct why *why);
size_t render_order(const void *order, size_t n_bytes, void *answer, int *ret_result);
void render_forget(uint64_t memory);
