/* staging/nodes/launch_said.h: what a launcher and its agents say on stderr, taken apart.
 *
 * A launcher passes on what the processes write and speaks in between, in paragraphs between two rules, most of
 * which are advice to somebody who debugs MPI. Of those that are known one sentence is kept which names the node; what
 * is not known is passed on as it is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/staging/nodes/launcher.h"

#define SAID_SENTENCE_SIZE 400u

struct said;

/* `hosts`: for messages; stays the caller's. `pass_on` gets what is the processes' own, at once, and what is not
 * known. Returns 0 or -ENOMEM. */
int said_new(const struct launcher *launcher, const char *hosts,
             void (*pass_on)(void *userdata, const char *bytes, size_t n_bytes), void *userdata,
             struct said **ret_said);
void said_free(struct said *said); /* NULL is fine */

void said_feed(struct said *said, const char *bytes, size_t n_bytes);
void said_end(struct said *said); /* nothing more comes */

/* A process of ours said that it runs (staging/nodes/cluster_guard.h): all nodes have come up. */
bool said_has_begun(const struct said *said);

/* It said that it is about to end the run. */
bool said_is_ending(const struct said *said);

/* It said that a process of ours ended the run, by itself: its exit status is ours. */
bool said_program_ended_it(const struct said *said);

/* The status with which a process of ours said that it ends the run (staging/nodes/cluster_guard.h); 0: none did. What
 * mpirun says behind that follows from it, and is no sentence. */
int said_last_word(const struct said *said);

/* Why the launcher ended it; "" if it is not to blame or did not say. */
const char *said_sentence(const struct said *said);

/* The first error inside the launcher that it reported on a line of its own; "" if there was none. Often it follows
 * from the end of the run, so it explains a run only where nothing else does. */
const char *said_error(const struct said *said);
