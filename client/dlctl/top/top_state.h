/* top/top_state.h: what the user looks at, and what a key changes. Knows neither terminal nor daemon. */
#pragma once

#include "client/dlctl/top/shown.h"

#define DELAY_LEAST 0.1 /* seconds between two looks */
#define DELAY_MOST  3600.0

#define TURNED_MAX 256u /* jobs that are opened or closed one by one */

enum top_mode {
        MODE_TABLE,
        MODE_DETAILS, /* of the chosen job */
        MODE_HELP,
        MODE_SORT,   /* a column is being chosen */
        MODE_SEARCH, /* something is being typed, here and below: a text that chooses a job, */
        MODE_FILTER, /* one that hides the others, */
        MODE_DELAY,  /* seconds */
};

enum press {
        PRESS_CHARACTER,
        PRESS_UP,
        PRESS_DOWN,
        PRESS_LEFT,
        PRESS_RIGHT,
        PRESS_PAGE_UP,
        PRESS_PAGE_DOWN,
        PRESS_HOME,
        PRESS_END,
        PRESS_ENTER,
        PRESS_ESCAPE,
        PRESS_BACKSPACE,
        PRESS_F1, /* and so on, to F10 */
        PRESS_F3 = PRESS_F1 + 2,
        PRESS_F4,
        PRESS_F5,
        PRESS_F6,
        PRESS_F9 = PRESS_F1 + 8,
        PRESS_F10,
};

struct top_state {
        enum top_mode mode;
        struct sorting sorting;
        double delay; /* seconds */
        bool is_paused, quits;
        char filter[FILTER_MAX], typed[FILTER_MAX];
        size_t searched_from; /* in MODE_SEARCH: the place where it began, */
        bool is_missing;      /* and that no job has what is typed */
        bool is_open;         /* jobs show their ranks, except those that are turned */
        struct item_key turned[TURNED_MAX];
        size_t n_turned;
        struct item_key chosen;  /* the item that is marked; none: the first one */
        size_t place, first;     /* where it stood, and the first item that was drawn */
        size_t n_page;           /* items that fit, as they were drawn last */
        size_t scroll, n_scroll; /* of details and help: lines above the window; how many there may be */
        size_t choice;           /* in MODE_SORT: of top_state_column() */
};

void top_state_init(struct top_state *state, struct sorting sorting, double delay, const char *filter, bool is_open);

/* For items_make(): are the job's ranks shown? `state` is a struct top_state. */
bool top_state_opens(const void *state, struct item_key job);

/* Finds the chosen item among these, or the nearest to its place, and scrolls so that it is among n_page. */
void top_state_settle(struct top_state *state, const struct items *items, size_t n_page);

/* A key. `character` is of PRESS_CHARACTER, ASCII. `items` are those that were drawn last. */
void top_state_press(struct top_state *state, enum press press, char character, const struct items *items);

/* The columns that can be sorted by; N_COLUMNS after the last. */
enum column top_state_column(size_t choice);
