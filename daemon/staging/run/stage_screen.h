/* staging/run/stage_screen.h: frames on stderr, one above the other's place, and a terminal that is left as it was.
 *
 * Each frame is one write(), so that nothing flickers; each line clears what was to its right, so that nothing is
 * cleared before it is drawn anew. The cursor rests below the frame and is never hidden, so that no end of the process,
 * not even a kill, leaves a terminal without it. A terminal that takes nothing (Ctrl-S) holds nobody up: frames are
 * left out. */
#pragma once

#include "daemon/staging/run/bars.h"

struct screen {
        int fd;
        uint32_t n_lines; /* of the frame that is shown */
        uint16_t widths[BARS_LINES_MAX];
};

/* A screen on a terminal's descriptor, which stays the caller's. One at a time in a process. An errno if it cannot be
 * opened once more. */
int screen_init(struct screen *screen, int fd);

/* How large it is now; `look` keeps its size if nobody knows. */
void screen_measure(const struct screen *screen, struct bars_look *look);

void screen_show(struct screen *screen, const struct bars_look *look, const struct bars_frame *frame);

/* Takes the frame away; the next line begins where it was. */
void screen_clear(struct screen *screen, const struct bars_look *look);

/* Would somebody who writes to the terminal now have to wait? */
bool screen_is_stuck(const struct screen *screen);

/* Clears, and closes what screen_init() opened. */
void screen_fini(struct screen *screen, const struct bars_look *look);
