/* top/top_screen.h: the terminal: lines go out, keys come in. ncurses is known here alone. */
#pragma once

#include "client/dlctl/top/line.h"
#include "client/dlctl/top/top_state.h"
#include "proto/base/why.h"

/* Takes the terminal over, until screen_close() or the program's end. Returns 0 or negative errno. */
int screen_open(struct why *reason);
void screen_close(void);

bool screen_utf8(void); /* it shows such characters */
void screen_size(unsigned *ret_columns, unsigned *ret_rows);

/* A picture: lines from the first row on, and then it is shown. */
void screen_begin(void);
void screen_line(void *arg, const struct line *line); /* an emit_fn */
void screen_end(void);

enum screen_key {
        SCREEN_NOTHING, /* no key is there */
        SCREEN_PRESS,
        SCREEN_REDRAW, /* the size has changed, or the key means nothing here */
};

/* Never waits. */
enum screen_key screen_key(enum press *ret_press, char *ret_character);
