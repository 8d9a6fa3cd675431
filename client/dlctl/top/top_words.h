/* top/top_words.h: texts of several lines. */
#pragma once

#include "client/dlctl/top/top_view.h"

/* Emits a text in as many lines as it needs, beside a label of `indent` columns. */
void words_emit(const struct view *view, const char *label, unsigned indent, enum style style, const char *text,
                emit_fn *emit, void *arg);
