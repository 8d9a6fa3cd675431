/* ctl/work/ctl_work.h: connections of worker processes, in which functions of a trainer run (pipeline/desk/desk.h).
 *
 * A worker process connects like every client and says the ticket of its rank, which only the trainer was told; it must
 * be of the same user. It gets the rank's memory, and then orders: replies that answer no request. Each answer to an
 * order is a request without a reply. The process that starts the others and watches them is connected in the same way
 * and gets no orders: it says how a process ended. */
#pragma once

#include "daemon/ctl/session.h"

/* Samples wait at the desk of this rank: deals them. */
void work_deal(struct session *rank);

/* Before a session ends: if it is that of a worker process, its samples are dealt to others. Its last answers have been
 * read. `reason`: why the daemon ends it; NULL: the process or its connection has ended. */
void work_session_ends(struct session *session, const char *reason);

/* After pipeline_remove(): the worker processes of the rank that has left are told to end. */
void work_rank_has_left(struct server *server);
