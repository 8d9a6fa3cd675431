/* pipeline/isolation/check_answer.h: is an answer of a cell possible? It may come from somebody else's code. */
#pragma once

#include "daemon/pipeline/isolation/rendering.h"

/* The answers of n_bytes in rendering->packet, to rendering->orders: finds them, for rendering->answers, if they are
 * possible. */
bool check_answers(struct rendering *rendering, size_t n_bytes);

/* What the daemon goes on with for this result of a codec: what a codec never returns is damage. */
int check_error(int result);

bool check_kept(const struct codec_kept *kept);
