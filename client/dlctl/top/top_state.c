#include "client/dlctl/top/top_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void top_state_init(struct top_state *state, struct sorting sorting, double delay, const char *filter, bool is_open) {
        *state = (struct top_state){ .sorting = sorting, .delay = delay, .is_open = is_open };
        snprintf(state->filter, sizeof(state->filter), "%s", filter);
}

enum column top_state_column(size_t choice) {
        return choice < COLUMN_STATUS ? (enum column)choice : N_COLUMNS;
}

/* ---- which jobs are open ------------------------------------------------------------------------------------- */

static bool top_state_is_turned(const struct top_state *state, uint64_t job, size_t *ret_at) {
        for (size_t i = 0; i < state->n_turned; i++)
                if (state->turned[i].job == job) {
                        *ret_at = i;
                        return true;
                }
        return false;
}

bool top_state_opens(const void *arg, struct item_key job) {
        const struct top_state *state = arg;
        size_t at;

        return state->is_open != top_state_is_turned(state, job.job, &at);
}

static void top_state_turn(struct top_state *state, bool open) {
        struct item_key job = { state->chosen.job, 0 };
        size_t at;

        if (job.job == 0 || top_state_opens(state, job) == open)
                return;
        if (top_state_is_turned(state, job.job, &at))
                state->turned[at] = state->turned[--state->n_turned];
        else if (state->n_turned < TURNED_MAX)
                state->turned[state->n_turned++] = job;
        if (!open)
                state->chosen.rank = 0;
}

static void turn_all(struct top_state *state) {
        state->is_open = !state->is_open;
        state->n_turned = 0;
        state->chosen.rank = 0;
}

/* ---- which item is chosen ------------------------------------------------------------------------------------ */

void top_state_settle(struct top_state *state, const struct items *items, size_t n_page) {
        size_t at = items->n;

        for (size_t i = 0; i < items->n && at == items->n; i++)
                if (key_equal(items->items[i].key, state->chosen))
                        at = i;
        if (at == items->n) /* it has gone, or there was none */
                at = state->place < items->n ? state->place : items->n > 0 ? items->n - 1 : 0;
        state->place = at;
        if (items->n > 0 && state->chosen.job != 0)
                state->chosen = items->items[at].key;
        state->n_page = n_page;
        if (state->first > at)
                state->first = at;
        if (at >= state->first + n_page)
                state->first = at + 1 - n_page;
        if (state->first + n_page > items->n)
                state->first = items->n > n_page ? items->n - n_page : 0;
}

static void top_state_choose(struct top_state *state, const struct items *items, size_t at) {
        if (items->n == 0)
                return;
        state->place = at < items->n ? at : items->n - 1;
        state->chosen = items->items[state->place].key;
}

static void top_state_move(struct top_state *state, const struct items *items, enum press press) {
        size_t page = state->n_page > 1 ? state->n_page - 1 : 1, at = state->place;

        if (state->chosen.job == 0 && (press == PRESS_UP || press == PRESS_DOWN)) {
                top_state_choose(state, items, state->first);
                return;
        }
        switch (press) {
        case PRESS_UP:
                top_state_choose(state, items, at > 0 ? at - 1 : 0);
                break;
        case PRESS_DOWN:
                top_state_choose(state, items, at + 1);
                break;
        case PRESS_PAGE_UP:
                top_state_choose(state, items, at > page ? at - page : 0);
                break;
        case PRESS_PAGE_DOWN:
                top_state_choose(state, items, at + page);
                break;
        case PRESS_HOME:
                top_state_choose(state, items, 0);
                break;
        case PRESS_END:
                top_state_choose(state, items, items->n);
                break;
        default:
                break;
        }
}

static void scroll(struct top_state *state, enum press press) {
        size_t page = state->n_page > 1 ? state->n_page - 1 : 1;

        switch (press) {
        case PRESS_UP:
                state->scroll -= state->scroll > 0;
                break;
        case PRESS_DOWN:
                state->scroll++;
                break;
        case PRESS_PAGE_UP:
                state->scroll = state->scroll > page ? state->scroll - page : 0;
                break;
        case PRESS_PAGE_DOWN:
                state->scroll += page;
                break;
        case PRESS_HOME:
                state->scroll = 0;
                break;
        case PRESS_END:
                state->scroll = state->n_scroll;
                break;
        default:
                break;
        }
        if (state->scroll > state->n_scroll)
                state->scroll = state->n_scroll;
}

/* ---- what is typed ------------------------------------------------------------------------------------------- */

static void top_state_ask_for(struct top_state *state, enum top_mode mode, const char *typed) {
        state->mode = mode;
        snprintf(state->typed, sizeof(state->typed), "%s", typed);
}

static void take_delay(struct top_state *state) {
        char *end;
        double delay = strtod(state->typed, &end);

        if (end == state->typed || *end || !(delay == delay))
                return;
        state->delay = delay < DELAY_LEAST ? DELAY_LEAST : delay > DELAY_MOST ? DELAY_MOST : delay;
}

/* Chooses the first job that has what is typed, from place `from` on and then from the top. */
static void search_on(struct top_state *state, const struct items *items, size_t from) {
        state->is_missing = state->typed[0] != '\0';
        for (size_t i = 0; i < items->n && state->is_missing; i++) {
                size_t at = (from + i) % items->n;

                if (items->items[at].rank || !item_has(&items->items[at], state->typed))
                        continue;
                top_state_choose(state, items, at);
                state->is_missing = false;
        }
}

static void ask_for_search(struct top_state *state) {
        top_state_ask_for(state, MODE_SEARCH, "");
        state->searched_from = state->place;
        state->is_missing = false;
}

/* What is typed is searched for at once; the choice stays when the search ends, however it ends. */
static void search(struct top_state *state, enum press press, const struct items *items) {
        if (press == PRESS_F3 || press == PRESS_DOWN)
                state->searched_from = state->place + 1;
        if (state->mode == MODE_SEARCH)
                search_on(state, items, state->searched_from);
}

static void type(struct top_state *state, enum press press, char character) {
        size_t n = strlen(state->typed);

        if (press == PRESS_ENTER || press == PRESS_F4) {
                if (state->mode == MODE_DELAY)
                        take_delay(state);
                state->mode = MODE_TABLE;
                return;
        }
        if (press == PRESS_ESCAPE || press == PRESS_F10) {
                if (state->mode == MODE_FILTER)
                        state->filter[0] = '\0';
                state->mode = MODE_TABLE;
                return;
        }
        if (press == PRESS_BACKSPACE && n > 0)
                state->typed[n - 1] = '\0';
        else if (press == PRESS_CHARACTER && n + 1 < sizeof(state->typed))
                snprintf(state->typed + n, sizeof(state->typed) - n, "%c", character);
        if (state->mode == MODE_FILTER)
                snprintf(state->filter, sizeof(state->filter), "%s", state->typed);
}

/* ---- the sequence -------------------------------------------------------------------------------------------- */

static void ask_for_column(struct top_state *state) {
        state->mode = MODE_SORT;
        for (state->choice = 0; top_state_column(state->choice) != state->sorting.column; state->choice++)
                ;
}

static void press_in_sort(struct top_state *state, enum press press, char character) {
        if (press == PRESS_UP && state->choice > 0)
                state->choice--;
        if (press == PRESS_DOWN && top_state_column(state->choice + 1) != N_COLUMNS)
                state->choice++;
        if (press == PRESS_HOME)
                state->choice = 0;
        if (press == PRESS_END)
                state->choice = COLUMN_STATUS - 1;
        if (press == PRESS_ENTER)
                state->sorting = (struct sorting){ top_state_column(state->choice), false };
        if (press == PRESS_ENTER || press == PRESS_ESCAPE || press == PRESS_F6 || press == PRESS_F10 ||
            (press == PRESS_CHARACTER && character == 'q'))
                state->mode = MODE_TABLE;
}

/* To the column on the left or right of the one that is sorted by. */
static void sort_beside(struct top_state *state, bool right) {
        size_t at = 0;

        while (top_state_column(at) != state->sorting.column)
                at++;
        if (right && top_state_column(at + 1) != N_COLUMNS)
                at++;
        else if (!right && at > 0)
                at--;
        state->sorting = (struct sorting){ top_state_column(at), false };
}

/* ---- keys ---------------------------------------------------------------------------------------------------- */

static void sort_by(struct top_state *state, enum column column) {
        state->sorting = (struct sorting){ column, false };
}

static void press_character(struct top_state *state, char character) {
        char delay[FILTER_MAX];

        switch (character) {
        case 'q':
                state->quits = true;
                break;
        case 'h':
        case '?':
                state->mode = MODE_HELP;
                state->scroll = 0;
                break;
        case '/':
                ask_for_search(state);
                break;
        case '\\':
                top_state_ask_for(state, MODE_FILTER, state->filter);
                break;
        case 't':
                turn_all(state);
                break;
        case '+':
        case '-':
                top_state_turn(state, character == '+');
                break;
        case '<':
        case '>':
                sort_beside(state, character == '>');
                break;
        case 'I':
                state->sorting.inverted = !state->sorting.inverted;
                break;
        case 'W':
                sort_by(state, COLUMN_WAIT);
                break;
        case 'P':
                sort_by(state, COLUMN_WORKERS);
                break;
        case 'M':
                sort_by(state, COLUMN_RING);
                break;
        case 'S':
                sort_by(state, COLUMN_SAMPLES);
                break;
        case 'd':
                snprintf(delay, sizeof(delay), "%g", state->delay);
                top_state_ask_for(state, MODE_DELAY, delay);
                break;
        case ' ':
        case 'Z':
                state->is_paused = !state->is_paused;
                break;
        default:
                break;
        }
}

static void press_in_table(struct top_state *state, enum press press, char character, const struct items *items) {
        switch (press) {
        case PRESS_CHARACTER:
                press_character(state, character);
                break;
        case PRESS_F1:
                press_character(state, 'h');
                break;
        case PRESS_F3:
                press_character(state, '/');
                break;
        case PRESS_F4:
                press_character(state, '\\');
                break;
        case PRESS_F5:
                turn_all(state);
                break;
        case PRESS_F6:
                ask_for_column(state);
                break;
        case PRESS_F10:
                state->quits = true;
                break;
        case PRESS_LEFT:
        case PRESS_RIGHT:
                top_state_choose(state, items, state->place);
                top_state_turn(state, press == PRESS_RIGHT);
                break;
        case PRESS_ENTER:
                top_state_choose(state, items, state->place);
                if (items->n > 0)
                        state->mode = MODE_DETAILS;
                state->scroll = 0;
                break;
        case PRESS_ESCAPE:
                state->chosen = (struct item_key){ 0, 0 };
                break;
        default:
                top_state_move(state, items, press);
                break;
        }
}

/* Details and help. */
static void press_in_page(struct top_state *state, enum press press, char character) {
        if (press == PRESS_ESCAPE || press == PRESS_ENTER || press == PRESS_LEFT || press == PRESS_F1 ||
            press == PRESS_F10 ||
            (press == PRESS_CHARACTER && (character == 'q' || character == 'h' || character == '?')))
                state->mode = MODE_TABLE;
        else if (press == PRESS_CHARACTER && (character == ' ' || character == 'Z'))
                state->is_paused = !state->is_paused;
        else
                scroll(state, press);
}

void top_state_press(struct top_state *state, enum press press, char character, const struct items *items) {
        switch (state->mode) {
        case MODE_TABLE:
                press_in_table(state, press, character, items);
                break;
        case MODE_SORT:
                press_in_sort(state, press, character);
                break;
        case MODE_SEARCH:
                type(state, press, character);
                search(state, press, items);
                break;
        case MODE_FILTER:
        case MODE_DELAY:
                type(state, press, character);
                break;
        default:
                press_in_page(state, press, character);
                break;
        }
}
