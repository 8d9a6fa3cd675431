#include "client/dlctl/waiting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/shown/amounts.h"
#include "proto/base/shown/shorten.h"

#define DRAW_NS 100000000ull
#define SAY_NS  10000000000ull
#define LONG_NS 1000000000ull /* nobody wants to read of shorter waits */
#define STAY_NS 5000000000ull /* a shorter wait leaves no line */

static struct {
        uint64_t began_ns; /* 0: nothing is shown */
        uint64_t drawn_ns, said_ns;
        bool is_drawn;
        char said[DLP_TEXT_MAX];
        char name[DLP_DATASET_MAX];
        char phase[DLP_PHASE_MAX];
} shown;

bool waiting_is_drawn(void) {
        const char *terminal = getenv("TERM");

        return isatty(STDERR_FILENO) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

static bool shows_utf8(void) {
        static const char *const NAMES[] = { "LC_ALL", "LC_CTYPE", "LANG" };
        const char *locale = NULL;

        for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]) && !(locale && *locale); i++)
                locale = getenv(NAMES[i]);
        return locale && (strcasestr(locale, "utf-8") || strcasestr(locale, "utf8"));
}

static unsigned waiting_n_columns(void) {
        struct winsize size;

        return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* Is it time to draw again? */
static bool waiting_is_due(void) {
        uint64_t now = clock_now_ns();

        if (shown.began_ns == 0)
                shown.began_ns = now;
        if (shown.is_drawn && now - shown.drawn_ns < DRAW_NS)
                return false;
        shown.drawn_ns = now;
        return true;
}

static void put_line(const char *line) {
        fprintf(stderr, "\r%s\033[K", line);
        fflush(stderr);
        shown.is_drawn = true;
}

void waiting_draw(const char *name, const struct dlp_progress *progress) {
        char line[DLP_PROGRESS_LINE_MAX];

        if (!waiting_is_drawn() || !waiting_is_due())
                return;
        snprintf(shown.name, sizeof(shown.name), "%s", name);
        snprintf(shown.phase, sizeof(shown.phase), "%s", progress->phase);
        put_line(dlp_progress_line(progress, name, waiting_n_columns(), shows_utf8(), line));
}

void waiting_say(const char *text) {
        uint64_t now = clock_now_ns();

        if (shown.began_ns == 0)
                shown.began_ns = now;
        if (shown.is_drawn || now - shown.began_ns < LONG_NS || (shown.said_ns != 0 && now - shown.said_ns < SAY_NS) ||
            strncmp(shown.said, text, sizeof(shown.said) - 1) == 0) /* the same for hours, if nobody stages it */
                return;
        shown.said_ns = now;
        snprintf(shown.said, sizeof(shown.said), "%s", text);
        fprintf(stderr, "dlctl: waiting: %s\n", text);
}

void waiting_end(void) {
        uint64_t took_ns = clock_now_ns() - shown.began_ns;
        char took[DURATION_TEXT_MAX], text[DLP_TEXT_MAX], line[DLP_PROGRESS_LINE_MAX];

        if (shown.is_drawn) {
                fputs("\r\033[K", stderr);
                if (took_ns >= STAY_NS && shown.phase[0]) {
                        shorten(text, sizeof(text), "%s%s%s: %s", shown.name, shown.name[0] ? ": " : "", shown.phase,
                                format_duration(took, took_ns / 1000000000ull));
                        fprintf(stderr, "%s\n", dlp_progress_text(text, waiting_n_columns(), shows_utf8(), line));
                }
                fflush(stderr);
        }
        shown.is_drawn = false;
        shown.began_ns = shown.said_ns = 0;
        shown.said[0] = '\0';
}

/* ---- the library's callbacks --------------------------------------------------------------------------------- */

void waiting_on_wait(void *userdata, const struct dlc_progress *progress) {
        char line[DLP_PROGRESS_LINE_MAX];

        (void)userdata;
        if (!waiting_is_drawn() || !waiting_is_due())
                return;
        snprintf(shown.name, sizeof(shown.name), "%s", progress->dataset);
        snprintf(shown.phase, sizeof(shown.phase), "%s", progress->phase);
        if (dlc_progress_line(progress, waiting_n_columns(), shows_utf8(), line, sizeof(line)) == 0)
                put_line(line);
}

void waiting_on_progress(void *userdata, const char *text) {
        (void)userdata;
        if (!waiting_is_drawn())
                waiting_say(text);
}
