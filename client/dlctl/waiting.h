/* dlctl/waiting.h: shows what a command waits for: on a terminal as a line with a bar that is drawn again and again,
 * elsewhere as a line of text now and then. All of it goes to stderr. One wait at a time. */
#pragma once

#include "client/include/dlclient.h"
#include "proto/base/shown/progress.h"

/* Is there a terminal on which the line is drawn? */
bool waiting_is_drawn(void);

/* Draws the line. Does nothing elsewhere, and not more often than ten times a second. `name` may be "". */
void waiting_draw(const char *name, const struct dlp_progress *progress);

/* Says the sentence, unless a line is drawn: the first after a second, then another one every ten seconds. */
void waiting_say(const char *text);

/* What is waited for is there, or given up: the line is cleared. If the wait took more than some seconds, a line stays
 * that says how long it was. Does nothing if nothing was shown. */
void waiting_end(void);

/* The same for the callbacks of struct dlc_options; `userdata` is not used. */
void waiting_on_wait(void *userdata, const struct dlc_progress *progress);
void waiting_on_progress(void *userdata, const char *text);
