/* base/work/background.h: work that would hold up the main loop runs on a thread of its own, which reports its end to the loop.
 *
 * Building an index or touching the memory of a ring takes from milliseconds to minutes. Each piece runs on a thread
 * that lives as long as the piece; when it is done, the loop finds background_fd() readable and background_reap() calls
 * the piece's `done` on the loop's thread. */
#pragma once

struct background;

int background_new(struct background **ret_background);

/* All pieces must have been reaped (background_stop). Takes NULL. */
void background_free(struct background *background);

/* Starts work(userdata) on a new thread. Later done(userdata) runs on the thread that reaps, exactly once. Returns 0 or
 * negative errno: then neither is called. Main thread. */
int background_run(struct background *background, void (*work)(void *userdata), void (*done)(void *userdata),
                   void *userdata);

/* Readable when there is something to reap. */
int background_fd(const struct background *background);

/* Calls `done` of every piece that has ended. Main thread. */
void background_reap(struct background *background);

/* Waits for all running pieces and reaps them; they must have been told to end. -ETIMEDOUT if one does not end within
 * ten seconds (timeout_ms), as on a dead mount: its thread and its data are still in use, so the process can only end
 * with _exit(). Main thread. */
int background_stop(struct background *background);
int background_stop_within(struct background *background, int timeout_ms);
