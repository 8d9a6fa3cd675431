/* dlctl top --once: the table as plain text, or as JSON. */

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "client/dlctl/control.h"
#include "client/dlctl/glance.h"
#include "client/dlctl/top/top.h"
#include "client/dlctl/top/top_record.h"
#include "client/dlctl/top/top_view.h"

#define PAPER_COLUMNS 200u /* where there is no terminal */

static unsigned n_columns(void) {
        struct winsize size;

        return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : PAPER_COLUMNS;
}

static void top_once_print_line(void *arg, const struct line *line) {
        size_t n = line->text.n;

        (void)arg;
        while (n > 0 && line->bytes[n - 1] == ' ')
                n--;
        fwrite(line->bytes, 1, n, stdout);
        putchar('\n');
}

static bool expands(const void *arg, struct item_key job) {
        const struct top_terms *terms = arg;

        (void)job;
        return terms->ranks;
}

static void top_once_print_table(const struct view *view, const struct items *items) {
        struct layout layout;
        struct line line;

        view_head(view, UINT32_MAX, top_once_print_line, NULL);
        if (items->n == 0)
                return;
        putchar('\n');
        view_layout(view, items, &layout);
        view_titles(view, &layout, &line);
        top_once_print_line(NULL, &line);
        for (size_t i = 0; i < items->n; i++) {
                view_item(view, &layout, &items->items[i], &line);
                top_once_print_line(NULL, &line);
        }
}

static int top_once_show(const struct context *context, const struct top_terms *terms,
                         struct glance *const glances[2]) {
        const struct glance *const pair[2] = { glances[0], glances[1] };
        char host[65] = "";
        struct rates rates;
        struct items items;
        cJSON *record;

        gethostname(host, sizeof(host) - 1);
        rates_make(pair, 2, &rates);
        items_make(&rates, terms->sorting, terms->filter, expands, terms, &items);
        if (context->format == OUTPUT_JSON) {
                record = top_record(&rates, &items);
                output_record(context->format, record);
                cJSON_Delete(record);
        } else {
                struct view view = {
                        .n_columns = n_columns(),
                        .utf8 = true,
                        .host = host,
                        .rates = &rates,
                        .datasets = glances[1],
                        .sorting = terms->sorting,
                };

                top_once_print_table(&view, &items);
        }
        items_free(&items);
        rates_free(&rates);
        return EXIT_DONE;
}

static void top_once_rest(double seconds) {
        struct timespec left = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

        while (nanosleep(&left, &left) < 0 && errno == EINTR)
                ;
}

int top_once(struct context *context, const struct top_terms *terms) {
        static const bool WANTED[N_QUESTIONS] = { [ASK_STATUS] = true, [ASK_JOBS] = true, [ASK_DATASETS] = true };
        struct glance *glances[2] = { NULL, NULL };
        struct control *control;
        int r = control_open(context, &control);

        if (r != EXIT_DONE)
                return r;
        r = glance_ask(control, WANTED, &glances[0]);
        if (r == EXIT_DONE) {
                top_once_rest(terms->delay);
                r = glance_ask(control, WANTED, &glances[1]);
        }
        if (r == EXIT_DONE)
                r = top_once_show(context, terms, glances);
        glance_free(glances[0]);
        glance_free(glances[1]);
        control_close(control);
        return r;
}
