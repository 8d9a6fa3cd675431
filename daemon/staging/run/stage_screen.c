#include "daemon/staging/run/stage_screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define CLEAR_LINE  "\033[K"
#define CLEAR_BELOW "\033[J"

#define STUCK_MS 50 /* the most that a frame waits for */

int screen_init(struct screen *screen, int fd) {
        char path[32];

        /* O_NONBLOCK belongs to whoever shares an open file: the shell's must stay as it is. */
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        *screen = (struct screen){ .fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) };
        return screen->fd < 0 ? -errno : 0;
}

void screen_measure(const struct screen *screen, struct bars_look *look) {
        struct winsize size;

        if (ioctl(screen->fd, TIOCGWINSZ, &size) < 0)
                return;
        if (size.ws_col > 0)
                look->n_columns = size.ws_col;
        if (size.ws_row > 0)
                look->n_rows = size.ws_row;
}

/* ---- frames -------------------------------------------------------------------------------------------------- */

static void stage_screen_write_all(int fd, const char *text, size_t n) {
        while (n > 0) {
                struct pollfd ready = { .fd = fd, .events = POLLOUT };
                ssize_t r = write(fd, text, n);

                if (r > 0) {
                        text += r;
                        n -= (size_t)r;
                } else if (r < 0 && errno != EINTR && (errno != EAGAIN || poll(&ready, 1, STUCK_MS) <= 0)) {
                        return;
                }
        }
}

bool screen_is_stuck(const struct screen *screen) {
        struct pollfd ready = { .fd = screen->fd, .events = POLLOUT };

        return poll(&ready, 1, STUCK_MS) <= 0;
}

/* Rows that the shown frame takes: a terminal that became narrower has wrapped its lines. */
static uint32_t shown_rows(const struct screen *screen, const struct bars_look *look) {
        uint32_t n = 0, n_columns = look->n_columns > 0 ? look->n_columns : 80;

        for (uint32_t i = 0; i < screen->n_lines; i++)
                n += screen->widths[i] > n_columns ? (screen->widths[i] + n_columns - 1) / n_columns : 1;
        return n;
}

/* To the first row of the shown frame. */
static size_t put_home(const struct screen *screen, const struct bars_look *look, char *at, size_t capacity) {
        uint32_t n_rows = shown_rows(screen, look);

        return (size_t)(n_rows > 0 ? snprintf(at, capacity, "\r\033[%uA", n_rows) : snprintf(at, capacity, "\r"));
}

void screen_show(struct screen *screen, const struct bars_look *look, const struct bars_frame *frame) {
        struct pollfd ready = { .fd = screen->fd, .events = POLLOUT };
        static char text[sizeof(frame->text) + BARS_LINES_MAX * sizeof(CLEAR_LINE) + 64];
        size_t n = put_home(screen, look, text, sizeof(text));
        const char *line = frame->text;

        if (poll(&ready, 1, 0) <= 0)
                return; /* there will be another one */
        for (uint32_t i = 0; i < frame->n_lines; i++) {
                const char *end = memchr(line, '\n', frame->n_bytes - (size_t)(line - frame->text));

                memcpy(text + n, line, (size_t)(end - line));
                n += (size_t)(end - line);
                memcpy(text + n, CLEAR_LINE "\n", strlen(CLEAR_LINE) + 1);
                n += strlen(CLEAR_LINE) + 1;
                line = end + 1;
        }
        memcpy(text + n, CLEAR_BELOW, strlen(CLEAR_BELOW));
        stage_screen_write_all(screen->fd, text, n + strlen(CLEAR_BELOW));
        screen->n_lines = frame->n_lines;
        memcpy(screen->widths, frame->widths, sizeof(screen->widths));
}

void screen_clear(struct screen *screen, const struct bars_look *look) {
        char text[64];
        size_t n;

        if (screen->n_lines == 0)
                return;
        n = put_home(screen, look, text, sizeof(text));
        n += (size_t)snprintf(text + n, sizeof(text) - n, CLEAR_BELOW);
        stage_screen_write_all(screen->fd, text, n);
        screen->n_lines = 0;
}

void screen_fini(struct screen *screen, const struct bars_look *look) {
        screen_clear(screen, look);
        close(screen->fd);
        screen->fd = -1;
}
