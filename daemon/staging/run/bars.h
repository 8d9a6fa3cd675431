/* staging/run/bars.h: a frame of the progress on a terminal: a line about all, and a bar for each node.
 *
 *   photos  27 %  transferring  12.3 GiB of 45.6 GiB  118.0 MiB/s  5 min left
 *   n1  ██████▌░░░░░░░░░░░░░░░░░  27 %  118.0 MiB/s  writing n01440764/a.jpg
 *
 * If there are more nodes than lines, those that are furthest behind have bars, in their own order, and a line sums up
 * the others. Nothing is drawn here: a frame is text, and who draws it writes it at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/record/record_progress.h"

#define BARS_WIDTH_MAX 200u /* columns; wider terminals are not filled: nobody reads so far */
#define BARS_LINES_MAX 40u

struct bars_look {
        uint32_t n_columns, n_rows; /* of the terminal */
        bool utf8;                  /* blocks, else '=' */
        bool colours;
};

struct bars_frame {
        char text[BARS_LINES_MAX * (BARS_WIDTH_MAX * 4 + 64)]; /* lines, each ended by '\n' */
        size_t n_bytes;
        uint32_t n_lines;
        uint16_t widths[BARS_LINES_MAX]; /* columns that each line takes: below n_columns */
};

/* The frame; `rates`: bytes a second of each node, or NULL. */
void bars_draw(const struct bars_look *look, const struct progress *progress, const uint64_t *rates,
               struct bars_frame *ret_frame);

/* The nodes that lack the largest share of their bytes, the one that lacks most first. Writes the numbers of n_wanted
 * of them at most and returns how many. */
uint32_t bars_furthest_behind(const struct progress *progress, uint32_t n_wanted, uint32_t *ret_nodes);

/* What a terminal of this environment can show: LC_ALL, LC_CTYPE, LANG; NO_COLOR, TERM. The size is the caller's. */
struct bars_look bars_look_of_environment(void);

/* A look as text and back: "100x24 utf8 colours". False if it is none. */
void bars_look_write(const struct bars_look *look, char text[64]);
bool bars_look_read(const char *text, struct bars_look *ret_look);
