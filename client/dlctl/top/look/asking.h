/* top/look/asking.h: looks at the daemon without ever waiting for it. */
#pragma once

#include <stdint.h>

#include "client/dlctl/command.h"
#include "client/dlctl/top/look/glance.h"

struct asking;

/* For the daemon that the other commands would ask. It may be away, and come back; `context` must live as long. */
struct asking *asking_new(const struct context *context);
void asking_free(struct asking *asking); /* takes NULL */

/* The descriptor that becomes readable when an answer is there; -1: there is no connection. */
int asking_fd(const struct asking *asking);

/* It is time for a look: connects if there is no connection, and asks unless it still waits for answers. */
void asking_tick(struct asking *asking, uint64_t now_ns);

/* Takes in what has come. Returns true when a look is complete; the caller owns it. *ret_datasets is NULL if they were
 * not asked for this time. */
bool asking_take(struct asking *asking, uint64_t now_ns, struct glance **ret_glance, struct glance **ret_datasets);

/* Why the daemon does not answer; NULL: it does, as far as is known. */
const char *asking_away(const struct asking *asking);

/* Rises with each connection: what was counted before, another daemon may have counted. */
unsigned asking_generation(const struct asking *asking);
