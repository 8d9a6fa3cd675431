#include "daemon/staging/run/bars.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/bytes.h"
#include "proto/base/cleanup.h"
#include "proto/base/utf8.h"

#define NAME_MAX_COLUMNS 24u
#define BAR_MIN          5u
#define BAR_MAX          40u

#define BOLD   "\033[1m"
#define DIM    "\033[2m"
#define RED    "\033[31m"
#define GREEN  "\033[32m"
#define YELLOW "\033[33m"
#define CYAN   "\033[36m"
#define PLAIN  "\033[0m"

/* ---- a line, column by column -------------------------------------------------------------------------------- */

struct line {
        const struct bars_look *look;
        struct bars_frame *frame;
        uint32_t n_columns, limit; /* used, and the most: a full line would wrap on some terminals */
};

static void bars_put_bytes(struct line *line, const char *bytes, size_t n) {
        struct bars_frame *frame = line->frame;

        assert(frame->n_bytes + n < sizeof(frame->text));
        memcpy(frame->text + frame->n_bytes, bytes, n);
        frame->n_bytes += n;
}

static void put_colour(struct line *line, const char *colour) {
        if (line->look->colours)
                bars_put_bytes(line, colour, strlen(colour));
}

/* At most `n_columns` of a text from anywhere: what would move the cursor, or cannot be shown, becomes '?'. Returns the
 * columns that it took. */
static uint32_t put_text(struct line *line, const char *text, uint32_t n_columns) {
        uint32_t used = 0;

        if (n_columns > line->limit - line->n_columns)
                n_columns = line->limit - line->n_columns;
        while (*text && used < n_columns) {
                uint32_t point = 0, width;
                size_t n = utf8_decode(text, SIZE_MAX, &point);
                bool shown = n > 0 && point >= ' ' && (point < 0x7f || (point >= 0xa0 && line->look->utf8));

                width = shown && utf8_columns(point) > 1 ? 2
                                                         : 1; /* a mark counts too: so the frame's bytes are bounded */
                if (used + width > n_columns)
                        break;
                bars_put_bytes(line, shown ? text : "?", shown ? n : 1);
                used += width;
                text += n > 0 ? n : 1;
        }
        line->n_columns += used;
        return used;
}

static void put_blanks(struct line *line, uint32_t n) {
        while (n-- > 0 && line->n_columns < line->limit) {
                bars_put_bytes(line, " ", 1);
                line->n_columns++;
        }
}

static void __attribute__((format(printf, 2, 3))) bars_put(struct line *line, const char *format, ...) {
        char text[256];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        put_text(line, text, UINT32_MAX);
}

static struct line bars_line_begin(const struct bars_look *look, struct bars_frame *frame) {
        uint32_t width = look->n_columns < BARS_WIDTH_MAX ? look->n_columns : BARS_WIDTH_MAX;

        return (struct line){ .look = look, .frame = frame, .limit = width > 1 ? width - 1 : 1 };
}

static void line_end(struct line *line) {
        struct bars_frame *frame = line->frame;

        put_colour(line, PLAIN);
        bars_put_bytes(line, "\n", 1);
        frame->widths[frame->n_lines++] = (uint16_t)line->n_columns;
}

/* ---- the bar ------------------------------------------------------------------------------------------------- */

static void put_bar(struct line *line, uint64_t n_done, uint64_t n_total, uint32_t n_columns) {
        static const char *const EIGHTHS[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
        double share = n_total > 0 ? (double)n_done / (double)n_total : 0;
        uint32_t eighths = (uint32_t)((share > 1 ? 1 : share) * 8 * n_columns), full = eighths / 8;
        bool utf8 = line->look->utf8;
        uint32_t at = 0;

        put_colour(line, share < 1 ? CYAN : GREEN);
        for (; at < full; at++)
                put_text(line, utf8 ? "█" : "=", 1);
        if (utf8 && eighths % 8 && at < n_columns) {
                put_text(line, EIGHTHS[eighths % 8], 1);
                at++;
        }
        put_colour(line, PLAIN DIM);
        for (; at < n_columns; at++)
                put_text(line, utf8 ? "░" : "-", 1);
        put_colour(line, PLAIN);
}

/* ---- lines --------------------------------------------------------------------------------------------------- */

/* Parts that do not fit as a whole are left out, the last first. */
static void draw_head(const struct bars_look *look, const struct progress *progress, struct bars_frame *frame) {
        struct line line = bars_line_begin(look, frame);
        char done[BYTES_TEXT_MAX], total[BYTES_TEXT_MAX], parts[5][64] = { "" }, left[DURATION_TEXT_MAX];
        size_t n = 0;

        if (progress->n_bytes_total > 0)
                snprintf(parts[n++], 64, "%u %%", percent_of(progress->n_bytes_done, progress->n_bytes_total));
        snprintf(parts[n++], 64, "%s", progress->phase);
        if (progress->n_bytes_total > 0) {
                snprintf(parts[n++], 64, "%s of %s", format_bytes(done, progress->n_bytes_done),
                         format_bytes(total, progress->n_bytes_total));
        } else if (progress->n_files_total > 0) {
                snprintf(parts[n++], 64, "%llu files", (unsigned long long)progress->n_files_total);
        }
        if (progress->bytes_per_second > 0)
                snprintf(parts[n++], 64, "%s/s", format_bytes(done, progress->bytes_per_second));
        if (progress->seconds_left != UINT64_MAX && progress->n_bytes_done < progress->n_bytes_total)
                snprintf(parts[n++], 64, "%s left", format_duration(left, progress->seconds_left));

        put_colour(&line, BOLD);
        put_text(&line, progress->dataset, look->n_columns / 3 > 8 ? look->n_columns / 3 : 8);
        put_colour(&line, PLAIN);
        for (size_t i = 0; i < n && line.n_columns + 2 + strlen(parts[i]) <= line.limit; i++)
                bars_put(&line, "  %s", parts[i]);
        line_end(&line);
}

static void draw_node(const struct bars_look *look, const struct node_progress *news, uint64_t rate,
                      uint32_t name_columns, struct bars_frame *frame) {
        struct line line = bars_line_begin(look, frame);
        char text[BYTES_TEXT_MAX + 8];
        uint32_t fixed = name_columns + 2 + 6, room = line.limit > fixed ? line.limit - fixed : 0, bar = room;

        if (room >= 60)
                bar = room - 44 < BAR_MAX ? room - 44 : BAR_MAX; /* the rate, and what it does */
        else if (room >= 24)
                bar = room - 14;
        put_blanks(&line, name_columns - put_text(&line, news->node, name_columns));
        put_blanks(&line, 2);
        if (bar >= BAR_MIN)
                put_bar(&line, news->n_bytes_done, news->n_bytes_total, bar);
        bars_put(&line, " %3u %%", percent_of(news->n_bytes_done, news->n_bytes_total));
        if (room >= 24) {
                format_bytes(text, rate);
                bars_put(&line, "  %10s/s", text);
        }
        if (news->n_errors > 0) {
                put_colour(&line, RED);
                bars_put(&line, "  %llu errors", (unsigned long long)news->n_errors);
                put_colour(&line, PLAIN);
        } else if (news->n_retries > 0 && room >= 60) {
                put_colour(&line, YELLOW);
                bars_put(&line, "  %llu retries", (unsigned long long)news->n_retries);
                put_colour(&line, PLAIN);
        }
        if (room >= 60 && news->doing[0]) {
                put_colour(&line, DIM);
                put_blanks(&line, 2);
                put_text(&line, news->doing, UINT32_MAX);
        }
        line_end(&line);
}

static void draw_rest(const struct bars_look *look, uint32_t n, unsigned least, unsigned most,
                      struct bars_frame *frame) {
        struct line line = bars_line_begin(look, frame);

        put_colour(&line, DIM);
        bars_put(&line, "and %u nodes more: %u %% to %u %%", n, least, most);
        line_end(&line);
}

/* ---- which nodes --------------------------------------------------------------------------------------------- */

/* The share that is missing, so that nodes of different sizes compare. */
static double behind(const struct node_progress *news) {
        if (news->n_bytes_done >= news->n_bytes_total)
                return 0;
        return 1 - (double)news->n_bytes_done / (double)news->n_bytes_total;
}

uint32_t bars_furthest_behind(const struct progress *progress, uint32_t n_wanted, uint32_t *ret_nodes) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < progress->n_listed; i++) {
                double share = behind(&progress->nodes[i]);
                uint32_t at = n;

                while (at > 0 && behind(&progress->nodes[ret_nodes[at - 1]]) < share)
                        at--;
                if (at == n_wanted)
                        continue;
                n += n < n_wanted;
                memmove(&ret_nodes[at + 1], &ret_nodes[at], (n - 1 - at) * sizeof(*ret_nodes));
                ret_nodes[at] = i;
        }
        return n;
}

static bool bars_is_among(const uint32_t *nodes, uint32_t n, uint32_t node) {
        while (n > 0 && nodes[n - 1] != node)
                n--;
        return n > 0;
}

static uint32_t columns_of_names(const struct bars_look *look, const struct progress *progress) {
        uint32_t most = 1, limit = look->n_columns / 4;

        for (uint32_t i = 0; i < progress->n_listed; i++) {
                size_t n = strlen(progress->nodes[i].node);

                if (n > most)
                        most = (uint32_t)n;
        }
        if (limit > NAME_MAX_COLUMNS)
                limit = NAME_MAX_COLUMNS;
        return most < limit ? most : limit > 0 ? limit : 1;
}

void bars_draw(const struct bars_look *look, const struct progress *progress, const uint64_t *rates,
               struct bars_frame *ret_frame) {
        uint32_t n_room = look->n_rows > 2 ? look->n_rows - 2 : 0; /* below the first line, above the cursor */
        uint32_t name_columns = columns_of_names(look, progress), n_bars, n_others = 0;
        uint32_t shown[BARS_LINES_MAX];
        unsigned least = 100, most = 0;

        if (n_room > BARS_LINES_MAX - 1)
                n_room = BARS_LINES_MAX - 1;
        ret_frame->n_bytes = ret_frame->n_lines = 0;
        draw_head(look, progress, ret_frame);
        n_bars = progress->n_listed <= n_room ? progress->n_listed : n_room > 0 ? n_room - 1 : 0;
        n_bars = bars_furthest_behind(progress, n_bars, shown);
        for (uint32_t i = 0; i < progress->n_listed; i++) {
                const struct node_progress *news = &progress->nodes[i];
                unsigned percent = percent_of(news->n_bytes_done, news->n_bytes_total);

                if (bars_is_among(shown, n_bars, i)) {
                        draw_node(look, news, rates ? rates[i] : 0, name_columns, ret_frame);
                        continue;
                }
                n_others++;
                least = percent < least ? percent : least;
                most = percent > most ? percent : most;
        }
        if (n_others > 0 && n_room > 0)
                draw_rest(look, n_others, least, most, ret_frame);
}

/* ---- the environment ----------------------------------------------------------------------------------------- */

struct bars_look bars_look_of_environment(void) {
        static const char *const NAMES[] = { "LC_ALL", "LC_CTYPE", "LANG" };
        const char *forbidden = getenv("NO_COLOR"), *terminal = getenv("TERM"), *locale = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(NAMES) && !(locale && *locale); i++)
                locale = getenv(NAMES[i]);
        return (struct bars_look){
                .n_columns = 80,
                .n_rows = 24,
                .utf8 = locale && (strcasestr(locale, "utf-8") || strcasestr(locale, "utf8")),
                .colours = !(forbidden && *forbidden) && terminal && *terminal && strcmp(terminal, "dumb") != 0,
        };
}

void bars_look_write(const struct bars_look *look, char text[64]) {
        snprintf(text, 64, "%ux%u%s%s", look->n_columns, look->n_rows, look->utf8 ? " utf8" : "",
                 look->colours ? " colours" : "");
}

bool bars_look_read(const char *text, struct bars_look *ret_look) {
        unsigned n_columns, n_rows;

        if (sscanf(text, "%5ux%5u", &n_columns, &n_rows) != 2 || n_columns == 0 || n_rows == 0)
                return false;
        *ret_look = (struct bars_look){ .n_columns = n_columns,
                                        .n_rows = n_rows,
                                        .utf8 = strstr(text, "utf8") != NULL,
                                        .colours = strstr(text, "colours") != NULL };
        return true;
}
