/* pipeline/desk/desk_private.h: what the files of this folder share. */
#pragma once

#include "daemon/pipeline/desk/desk.h"

#define TELL_NS    1000000000ull  /* something is missing for that long: the client is told */
#define GIVE_UP_NS 60000000000ull /* without a process for that long: the job ends */
#define LOST_NS    10000000000ull /* how long it may take until it is said how a process ended */

/* For messages: the name of the first function. */
const char *desk_function(const struct desk *desk);

/* The same, of those that the order of the task is for. */
const char *desk_function_of(const struct desk *desk, const struct task *task);

/* Where a sentence about the task is kept, for desk_why(). NULL: there is no memory for it. */
struct why *desk_note(struct task *task);

/* The task goes back to the worker threads. */
void desk_give_back(struct desk *desk, struct task *task, enum function_state state);

/* Which of the task's samples has this number; UINT32_MAX: none. */
uint32_t desk_find_sample(const struct task *task, uint64_t number);

/* Orders that a process may have, and samples that it could take now. Main thread, as all that follows. */
uint32_t desk_orders_max(const struct desk *desk);
uint32_t desk_room_of(const struct seat *seat);

/* Samples for one packet of orders, about. */
uint32_t desk_packet_max(const struct desk *desk);

/* How many samples a run should have, as far as it is known how long the functions take. */
uint32_t desk_choose_run(const struct desk *desk);

/* The process has answered `n` samples, for which its functions took took_ns, as it says; 0: it does not. */
void desk_note_time(struct seat *seat, uint32_t n, uint64_t took_ns);

/* Main thread, after a change of any seat. */
void desk_count_seats(struct desk *desk);

/* All samples end with this reason, now and later. Main thread or planner. */
void desk_end_all(struct desk *desk, const struct why *why);

/* Releases a task of a process that has ended, or on which the desk does not wait any longer. `text` says how it ended;
 * NULL: the task is not to blame. Without the lock held. */
void desk_release(struct desk *desk, struct task *task, const char *text);
