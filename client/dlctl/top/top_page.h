/* top/top_page.h: a whole window, line by line: head, table and keys, or one of the other pages. */
#pragma once

#include "client/dlctl/top/top_state.h"
#include "client/dlctl/top/top_view.h"

/* Emits n_rows lines at most, for a window of that size. What does not fit is left out, the table last. Notes in the
 * state what has been drawn. */
void page_draw(const struct view *view, struct top_state *state, const struct items *items, unsigned n_rows,
               emit_fn *emit, void *arg);
