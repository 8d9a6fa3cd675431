#include "proto/origin_answers.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "proto/base/shown/amounts.h"

#define ORIGIN_PARTS_MAX  384u /* of a text that has room for the last trouble, too */
#define ORIGIN_FIGURE_MAX 40u

/* "118 ms", "2.10 s" */
static const char *origin_time(uint64_t ns, char text[ORIGIN_FIGURE_MAX]) {
        double s = (double)ns / 1e9;

        snprintf(text, ORIGIN_FIGURE_MAX, s < 1 ? "%.3g ms" : "%.3g s", s < 1 ? s * 1000 : s);
        return text;
}

struct origin_writer {
        char text[ORIGIN_PARTS_MAX];
        size_t n;
};

static void origin_write(struct origin_writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void origin_write(struct origin_writer *writer, const char *format, ...) {
        size_t n_left = sizeof(writer->text) - writer->n;
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vsnprintf(writer->text + writer->n, n_left, format, arguments);
        va_end(arguments);
        if (n > 0)
                writer->n += (size_t)n < n_left ? (size_t)n : n_left - 1;
}

static const char *origin_join(const struct origin_writer *writer) {
        return writer->n > 0 ? ", " : "";
}

const char *dlp_origin_text(const struct dlp_origin *origin, char buffer[DLP_TEXT_MAX]) {
        char one[ORIGIN_FIGURE_MAX], other[ORIGIN_FIGURE_MAX], bytes[BYTES_TEXT_MAX];
        struct origin_writer w = { .n = 0 };

        if (origin->n_answers > 0)
                origin_write(&w, "first byte after %s (median; 99.9 %% within %s)",
                             origin_time(origin->first_byte_ns, one), origin_time(origin->first_byte_late_ns, other));
        if (origin->bytes_per_second > 0)
                origin_write(&w, "%s%s/s", origin_join(&w), format_bytes(bytes, origin->bytes_per_second));
        if (origin->n_ahead > 0)
                origin_write(&w, "%s%" PRIu64 " request%s (%s) not answered yet", origin_join(&w), origin->n_ahead,
                             origin->n_ahead == 1 ? "" : "s", format_bytes(bytes, origin->ahead_bytes));
        if (origin->n_retries > 0)
                origin_write(&w, "%s%" PRIu64 " of %" PRIu64 " requests were retries", origin_join(&w),
                             origin->n_retries, origin->n_requests);
        if (origin->n_paused > 0)
                origin_write(&w, "%sleft alone %" PRIu64 " time%s because it asked for that (429, 503)",
                             origin_join(&w), origin->n_paused, origin->n_paused == 1 ? "" : "s");
        snprintf(buffer, DLP_TEXT_MAX, "%s", w.text);
        return buffer;
}
