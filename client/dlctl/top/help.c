#include "client/dlctl/top/top_view.h"
#include "client/dlctl/top/top_words.h"

static const struct {
        const char *key, *does;
} LINES[] = {
        { "q F10", "quit" },
        { "Enter", "all of a job: its terms, where the workers' time goes, its ranks; Esc goes back" },
        { "arrows", "choose a job or rank; also Page Up, Page Down, Home, End; Esc: none" },
        { "F5 t", "show or hide the ranks of all jobs" },
        { "+ -", "of the chosen job; also Right and Left" },
        { "F6", "choose the column to sort by" },
        { "< >", "sort by the column beside" },
        { "W P M S", "sort by waits, workers' time, memory, samples" },
        { "I", "the other way round" },
        { "F3 /", "search: choose the next job whose name, user or dataset has a text in it; F3 the one after it" },
        { "F4 \\", "filter: only jobs that have a text there" },
        { "d", "seconds between two looks" },
        { "Space Z", "stop and go on" },
        { "F1 h ?", "this page" },
        { "", "" },
};

void view_help(const struct view *view, emit_fn *emit, void *arg) {
        struct line line;

        line_begin(&line, view->n_columns, view->utf8);
        line_put(&line, STYLE_STRONG, "dlctl top");
        line_put(&line, STYLE_PLAIN, ": rates and shares are of the last seconds");
        emit(arg, &line);
        for (size_t i = 0; i < sizeof(LINES) / sizeof(LINES[0]); i++)
                words_emit(view, LINES[i].key, 11, STYLE_PLAIN, LINES[i].does, emit, arg);
        for (size_t i = 0; i < N_COLUMNS; i++)
                if (TOP_COLUMNS[i].help)
                        words_emit(view, TOP_COLUMNS[i].title, 11, STYLE_PLAIN, TOP_COLUMNS[i].help, emit, arg);
}
