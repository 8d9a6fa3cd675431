#define NCURSES_WIDECHAR 1
#include "client/dlctl/top/top_screen.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/dlctl/output.h"

#define ESCAPE_MS 50 /* a key's bytes come at once; a lone Esc is one after that */

static struct {
        SCREEN *screen; /* NULL: not open */
        bool utf8;
        int row;
        attr_t styles[N_STYLES], chosen;
} terminal;

/* ---- styles -------------------------------------------------------------------------------------------------- */

static void style_plainly(void) {
        terminal.styles[STYLE_DIM] = A_DIM;
        terminal.styles[STYLE_STRONG] = A_BOLD;
        terminal.styles[STYLE_LABEL] = A_NORMAL;
        terminal.styles[STYLE_TITLE] = A_REVERSE;
        terminal.styles[STYLE_SORTED] = A_REVERSE | A_BOLD;
        terminal.styles[STYLE_KEY] = A_REVERSE;
        terminal.styles[STYLE_GOOD] = A_NORMAL;
        terminal.styles[STYLE_FAIR] = A_BOLD;
        terminal.styles[STYLE_BAD] = A_BOLD;
        terminal.chosen = A_REVERSE;
}

static void style_in_colours(void) {
        static const struct {
                enum style style;
                short text, ground;
        } PAIRS[] = {
                { STYLE_LABEL, COLOR_CYAN, -1 },
                { STYLE_TITLE, COLOR_BLACK, COLOR_GREEN },
                { STYLE_SORTED, COLOR_BLACK, COLOR_CYAN },
                { STYLE_KEY, COLOR_BLACK, COLOR_CYAN },
                { STYLE_GOOD, COLOR_GREEN, -1 },
                { STYLE_FAIR, COLOR_YELLOW, -1 },
                { STYLE_BAD, COLOR_RED, -1 },
        };

        start_color();
        use_default_colors();
        for (short i = 0; i < (short)(sizeof(PAIRS) / sizeof(PAIRS[0])); i++) {
                init_pair((short)(i + 1), PAIRS[i].text, PAIRS[i].ground);
                terminal.styles[PAIRS[i].style] = (attr_t)COLOR_PAIR(i + 1);
        }
        terminal.styles[STYLE_BAD] |= A_BOLD;
        init_pair(20, COLOR_BLACK, COLOR_CYAN);
        terminal.chosen = (attr_t)COLOR_PAIR(20);
}

/* ---- the terminal -------------------------------------------------------------------------------------------- */

bool screen_utf8(void) {
        return terminal.utf8;
}

void screen_size(unsigned *ret_columns, unsigned *ret_rows) {
        *ret_columns = COLS > 0 ? (unsigned)COLS : 0;
        *ret_rows = LINES > 0 ? (unsigned)LINES : 0;
}

void screen_close(void) {
        if (!terminal.screen)
                return;
        endwin();
        delscreen(terminal.screen);
        terminal.screen = NULL;
}

int screen_open(struct why *reason) {
        const char *type = getenv("TERM");

        setlocale(LC_CTYPE, ""); /* and no more: numbers keep their point */
        terminal.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
        set_escdelay(ESCAPE_MS);
        terminal.screen = newterm(NULL, stdout, stdin);
        if (!terminal.screen)
                return why_set(reason, -ENOTTY,
                               "terminals of the type \"%.64s\" are not known here: set TERM, or give --once",
                               type ? type : "");
        atexit(screen_close);
        cbreak();
        noecho();
        nonl();
        keypad(stdscr, TRUE);
        nodelay(stdscr, TRUE);
        curs_set(0);
        style_plainly();
        if (has_colors() && output_colours(STDOUT_FILENO))
                style_in_colours();
        return 0;
}

/* ---- pictures ------------------------------------------------------------------------------------------------ */

void screen_begin(void) {
        erase();
        terminal.row = 0;
}

void screen_line(void *arg, const struct line *line) {
        attr_t fill = line->is_chosen ? terminal.chosen : terminal.styles[line->fill];

        (void)arg;
        if (terminal.row >= LINES)
                return;
        if (fill != A_NORMAL) {
                attrset((int)fill);
                mvhline(terminal.row, 0, ' ' | fill, COLS);
        }
        for (size_t i = 0; i < line->n_spans; i++) {
                const struct span *span = &line->spans[i];
                size_t end = i + 1 < line->n_spans ? line->spans[i + 1].from : line->text.n;

                attrset((int)(line->is_chosen ? terminal.chosen : terminal.styles[span->style]));
                mvaddnstr(terminal.row, (int)span->column, line->bytes + span->from, (int)(end - span->from));
        }
        terminal.row++;
}

void screen_end(void) {
        attrset(A_NORMAL);
        refresh();
}

/* ---- keys ---------------------------------------------------------------------------------------------------- */

static bool is_known_key(int key, enum press *ret_press) {
        static const struct {
                int key;
                enum press press;
        } KEYS[] = {
                { KEY_UP, PRESS_UP },
                { KEY_DOWN, PRESS_DOWN },
                { KEY_LEFT, PRESS_LEFT },
                { KEY_RIGHT, PRESS_RIGHT },
                { KEY_PPAGE, PRESS_PAGE_UP },
                { KEY_NPAGE, PRESS_PAGE_DOWN },
                { KEY_HOME, PRESS_HOME },
                { KEY_END, PRESS_END },
                { KEY_ENTER, PRESS_ENTER },
                { '\r', PRESS_ENTER },
                { '\n', PRESS_ENTER },
                { 27, PRESS_ESCAPE },
                { 127, PRESS_BACKSPACE },
                { KEY_BACKSPACE, PRESS_BACKSPACE },
                { '\b', PRESS_BACKSPACE },
                { 'P' & 0x1f, PRESS_UP },
                { 'N' & 0x1f, PRESS_DOWN },
                { 'B' & 0x1f, PRESS_PAGE_UP },
                { 'F' & 0x1f, PRESS_PAGE_DOWN },
        };

        if (key >= KEY_F(1) && key <= KEY_F(10)) {
                *ret_press = (enum press)(PRESS_F1 + (key - KEY_F(1)));
                return true;
        }
        for (size_t i = 0; i < sizeof(KEYS) / sizeof(KEYS[0]); i++)
                if (KEYS[i].key == key) {
                        *ret_press = KEYS[i].press;
                        return true;
                }
        return false;
}

enum screen_key screen_key(enum press *ret_press, char *ret_character) {
        int key = getch();

        if (key == ERR)
                return SCREEN_NOTHING;
        if (key == ('L' & 0x1f)) {
                clearok(curscr, TRUE);
                return SCREEN_REDRAW;
        }
        *ret_character = '\0';
        if (is_known_key(key, ret_press))
                return SCREEN_PRESS;
        if (key < ' ' || key > 255)
                return SCREEN_REDRAW;
        *ret_press = PRESS_CHARACTER;
        *ret_character = (char)key;
        return SCREEN_PRESS;
}
