/* ctl/metrics/metrics_pages.h: the text of the metrics, a packet at a time.
 *
 * All parts are of one text, so that no line is cut and no rank comes twice. A text is kept until its last part has
 * been told. There are few of them, however many clients ask: the oldest one makes room, and its client begins again.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/ctl/session.h"

/* Makes the text that this session may see. Returns its number, or -ENOMEM. */
int metrics_pages_make(struct session *session, uint64_t *ret_number);

/* At most `n_max` bytes of one of the session's texts, from byte `first` on. Returns 0; *ret_next is where the next
 * part begins, 0 if this was the last: then the text is to be given up with metrics_pages_drop() after sending.
 * -EAGAIN: the text is gone; -EINVAL: it has no such byte. */
int metrics_pages_part(struct session *session, uint64_t number, uint64_t first, size_t n_max, const char **ret_part,
                       size_t *ret_n, uint64_t *ret_next);

/* Gives up all texts of a session. */
void metrics_pages_drop(struct server *server, const struct session *session);
