#include "proto/base/shown/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/shown/amounts.h"
#include "proto/base/shown/columns.h"

#define BAR_MIN       8u
#define BAR_MAX       40u
#define NAME_MIN      8u /* columns that a name has in any case */
#define PARTS_MAX     4u
#define SHOW_RATE_NS  1000000000ull /* no rate before: the first moment says little */
#define SECONDS_SHOWN 2.0           /* the time that passed, of work whose end nobody knows */

/* ---- rates --------------------------------------------------------------------------------------------------- */

void dlp_pace_begin(struct dlp_pace *pace, uint64_t now_ns) {
        *pace = (struct dlp_pace){ .began_ns = now_ns };
        rate_add(&pace->rate, now_ns, 0, 0);
}

void dlp_pace_add(struct dlp_pace *pace, uint64_t now_ns, uint64_t done, uint64_t total) {
        if (pace->rate.n > 0 && done < pace->rate.count[pace->rate.n - 1])
                rate_reset(&pace->rate);
        pace->total = total;
        rate_add(&pace->rate, now_ns, done, total);
}

void dlp_pace_read(const struct dlp_pace *pace, uint64_t now_ns, struct dlp_progress *progress) {
        const struct rate *rate = &pace->rate;
        bool stands_still = rate->n > 0 && now_ns - rate->at_ns[rate->n - 1] > RATE_WINDOW_NS;
        bool is_young = now_ns - pace->began_ns < SHOW_RATE_NS;
        uint64_t left = rate_seconds_left(rate, now_ns);

        progress->seconds = (double)(now_ns - pace->began_ns) / 1e9;
        progress->per_second = stands_still || is_young ? 0 : (double)rate_per_second(rate);
        progress->seconds_left = stands_still || pace->total == 0 || left == UINT64_MAX ? -1 : (double)left;
}

/* ---- words --------------------------------------------------------------------------------------------------- */

static bool progress_is_bytes(const struct dlp_progress *progress) {
        return strcmp(progress->unit, "B") == 0;
}

static bool has_rate(const struct dlp_progress *progress) {
        return progress->per_second >= 1 && progress->per_second < 1e18;
}

static bool progress_has_end(const struct dlp_progress *progress) {
        return progress->total > 0 && progress->seconds_left >= 0 && progress->seconds_left < 1e12 &&
               progress->done < progress->total;
}

/* "12.3 GiB", "45.6 M". */
static const char *amount(const struct dlp_progress *progress, uint64_t n, char buffer[BYTES_TEXT_MAX]) {
        return progress_is_bytes(progress) ? format_bytes(buffer, n) : format_count(buffer, n);
}

/* "12.3 GiB of 45.6 GiB", "120 k files"; "" if nothing was counted. */
static void print_amount(const struct dlp_progress *progress, char *text, size_t size) {
        char done[BYTES_TEXT_MAX], total[BYTES_TEXT_MAX];
        const char *blank = progress_is_bytes(progress) || !progress->unit[0] ? "" : " ";
        const char *unit = progress_is_bytes(progress) ? "" : progress->unit;

        text[0] = '\0';
        amount(progress, progress->done, done);
        if (progress->total > 0)
                snprintf(text, size, "%s of %s%s%s", done, amount(progress, progress->total, total), blank, unit);
        else if (progress->unit[0] || progress->done > 0)
                snprintf(text, size, "%s%s%s", done, blank, unit);
}

static void print_rate(const struct dlp_progress *progress, char *text, size_t size) {
        char rate[BYTES_TEXT_MAX];

        text[0] = '\0';
        if (has_rate(progress))
                snprintf(text, size, "%s/s", amount(progress, (uint64_t)progress->per_second, rate));
}

/* The time that is left; if nobody knows and `or_passed`, the time that has passed. */
static void progress_print_time(const struct dlp_progress *progress, bool or_passed, char *text, size_t size) {
        char time[DURATION_TEXT_MAX];

        text[0] = '\0';
        if (progress_has_end(progress))
                snprintf(text, size, "%s left", format_duration(time, (uint64_t)progress->seconds_left));
        else if (or_passed && progress->seconds >= SECONDS_SHOWN && progress->seconds < 1e12)
                snprintf(text, size, "%s", format_duration(time, (uint64_t)progress->seconds));
}

const char *dlp_progress_sentence(const struct dlp_progress *progress, char buffer[DLP_TEXT_MAX]) {
        char text[2 * BYTES_TEXT_MAX + DLP_UNIT_MAX + 8];
        size_t n = (size_t)snprintf(buffer, DLP_TEXT_MAX, "%s", progress->phase);

        print_amount(progress, text, sizeof(text));
        if (text[0])
                n += (size_t)snprintf(buffer + n, DLP_TEXT_MAX - n, "%s%s", n > 0 ? ", " : "", text);
        if (progress->total > 0)
                n += (size_t)snprintf(buffer + n, DLP_TEXT_MAX - n, " (%u %%)",
                                      percent_of(progress->done, progress->total));
        else if (text[0])
                n += (size_t)snprintf(buffer + n, DLP_TEXT_MAX - n, " so far");
        print_rate(progress, text, sizeof(text));
        if (text[0])
                n += (size_t)snprintf(buffer + n, DLP_TEXT_MAX - n, ", %s", text);
        progress_print_time(progress, false, text, sizeof(text));
        if (text[0])
                snprintf(buffer + n, DLP_TEXT_MAX - n, ", %s", text);
        return buffer;
}

/* ---- what fits ----------------------------------------------------------------------------------------------- */

enum part {
        PART_PERCENT,
        PART_AMOUNT,
        PART_RATE,
        PART_TIME,
};

struct parts {
        char texts[PARTS_MAX][96]; /* "": left out */
};

static unsigned progress_width_of(const struct parts *parts) {
        unsigned n = 0;

        for (unsigned i = 0; i < PARTS_MAX; i++)
                n += parts->texts[i][0] ? 2 + (unsigned)strlen(parts->texts[i]) : 0;
        return n;
}

/* Leaves out what does not fit into n columns, the least important first. */
static void fit(struct parts *parts, unsigned n_columns) {
        static const enum part LEAST_FIRST[] = { PART_RATE, PART_AMOUNT, PART_TIME, PART_PERCENT };

        for (unsigned i = 0; i < PARTS_MAX && progress_width_of(parts) > n_columns; i++)
                parts->texts[LEAST_FIRST[i]][0] = '\0';
}

static unsigned progress_limit_of(unsigned n_columns) {
        return n_columns > DLP_PROGRESS_COLUMNS ? DLP_PROGRESS_COLUMNS : n_columns > 1 ? n_columns - 1 : 1;
}

const char *dlp_progress_line(const struct dlp_progress *progress, const char *name, unsigned n_columns, bool utf8,
                              char buffer[DLP_PROGRESS_LINE_MAX]) {
        struct columns line = { .bytes = buffer, .size = DLP_PROGRESS_LINE_MAX, .utf8 = utf8 };
        unsigned limit = progress_limit_of(n_columns), n_name, n_rest, bar = 0;
        struct parts parts = { 0 };

        buffer[0] = '\0';
        if (progress->total > 0)
                snprintf(parts.texts[PART_PERCENT], 96, "%3u %%", percent_of(progress->done, progress->total));
        print_amount(progress, parts.texts[PART_AMOUNT], 96);
        print_rate(progress, parts.texts[PART_RATE], 96);
        progress_print_time(progress, true, parts.texts[PART_TIME], 96);

        /* The name has a third of the line, or what the rest leaves. */
        n_rest = 2 + columns_of(progress->phase, utf8) + progress_width_of(&parts) +
                 (progress->total > 0 ? BAR_MIN + 1 : 0);
        n_name = limit > n_rest && limit - n_rest > limit / 3 ? limit - n_rest : limit / 3;
        if (n_name < NAME_MIN)
                n_name = limit < NAME_MIN ? limit : NAME_MIN;
        if (name[0] && limit >= NAME_MIN) {
                columns_name(&line, name, n_name);
                columns_text(&line, ": ", 0, limit - line.n_columns);
        }
        columns_text(&line, progress->phase, 0, limit - line.n_columns);
        fit(&parts, limit - line.n_columns);
        n_rest = limit - line.n_columns - progress_width_of(&parts);
        if (progress->total > 0 && n_rest >= BAR_MIN)
                bar = n_rest < BAR_MAX ? n_rest : BAR_MAX; /* with the blank before it, and one less after it */
        if (bar > 0) {
                columns_bytes(&line, " ", 1, 1);
                columns_bar(&line, (double)progress->done / (double)progress->total, bar);
        }
        for (unsigned i = 0; i < PARTS_MAX; i++)
                if (parts.texts[i][0]) {
                        unsigned n_blanks = bar > 0 && i == PART_PERCENT ? 1 : 2;
                        const char *text = parts.texts[i];

                        columns_bytes(&line, "  ", n_blanks, n_blanks);
                        columns_text(&line, bar > 0 ? text : text + strspn(text, " "), 0, limit);
                }
        return buffer;
}

const char *dlp_progress_text(const char *text, unsigned n_columns, bool utf8, char buffer[DLP_PROGRESS_LINE_MAX]) {
        struct columns line = { .bytes = buffer, .size = DLP_PROGRESS_LINE_MAX, .utf8 = utf8 };

        buffer[0] = '\0';
        columns_begin(&line, text, progress_limit_of(n_columns));
        return buffer;
}
