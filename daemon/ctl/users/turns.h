/* ctl/users/turns.h: the main thread's time, which is shared as the workers' is.
 *
 * What a session has the main thread do is measured, and charged with its user's part of the workers' time. That alone
 * does not help against whoever has no ranks, so a user whose requests took more than TURN_PERCENT of a CPU lately is
 * read later, for as long as other users have ranks: until then his requests wait in their sockets. An admin is never
 * made to wait, nor is a worker process, which sends at most a message for each sample. Main thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct server;
struct session;

#define TURN_PERCENT   10
#define TURN_CREDIT_NS 50000000       /* of CPU time that a user may take at once */
#define TURN_WAIT_NS   10000000000ull /* the longest that a request waits, whatever the one before took */

/* Charges the session's user for an event that has been handled. `begun_ns`: clock_thread_ns() when that began. The
 * session may be closed by now. */
void turn_end(const struct session *session, uint64_t begun_ns);

/* Has the session's user used up his turn? If so, the session does not listen until the next one. */
bool turn_is_over(struct session *session);

/* The timer that gives the next turns: `turns_event` of the server. -ENOMEM. */
int turns_start(struct server *server);
void turns_stop(struct server *server);
