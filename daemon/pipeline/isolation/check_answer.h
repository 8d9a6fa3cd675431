/* pipeline/isolation/check_answer.h: is an answer of a cell possible? It may come from somebody else's code. */
#pragma once

#include "daemon/pipeline/isolation/rendering.h"

/* Finds the answers to rendering->orders in the n_bytes of rendering->packet, and sets rendering->answers. False: they
 * are not possible. */
bool check_answers(struct rendering *rendering, size_t n_bytes);

/* The error that the daemon takes for this result of a cell: -EBADMSG (damage) if no codec returns such a result. */
int check_error(int result);

bool check_kept(const struct codec_kept *kept);
