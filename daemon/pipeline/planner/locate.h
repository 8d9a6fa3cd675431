/* pipeline/planner/locate.h: a sample's way to the reader: where its bytes lie, and memory for them. */
#pragma once

#include "daemon/pipeline/planner/planner.h"

/* Finds where the candidate's bytes lie, and memory for them; if there is none now, it waits for a buffer of its
 * feed. An error is passed to the worker like that of a read. Planner only. */
enum sample_state locate_sample(struct planner *planner, struct task *task);

/* Asks for what the read under way needs, where the dataset lies elsewhere, and waits for it. Planner only. */
enum sample_state locate_fetch(struct planner *planner, struct task *task);

/* Is what it waits for not waited for any more, because nobody wants its batch? Then it is the caller's. Planner only.
 */
bool locate_leave(struct task *task);

/* It is made again from its bytes. Planner only. */
enum sample_state locate_again(struct planner *planner, struct task *task);

/* The first bytes of a sound have arrived (is_head): finds where the sample's part of it lies, and only that will be
 * read. The worker that has the task. */
void locate_take_head(struct task *task);
