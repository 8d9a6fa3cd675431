#include "client/lib/progress/client_progress.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/client_clock.h"
#include "client/lib/loader.h"
#include "proto/base/shown/shorten.h"
#include "proto/base/text.h"
#include "proto/base/utf8.h"

#define WAIT_NS     100000000ull  /* between two calls of on_wait */
#define PROGRESS_NS 1000000000ull /* and of on_progress */
#define ASK_NS      250000000ull  /* between two questions to the daemon */
#define FRESH_NS    2000000000ull /* an answer to an older one is of an earlier wait */

void dli_progress_tell(struct dlc_loader *loader, const struct dlp_progress *progress, const char *text) {
        const struct dlc_options *options = &loader->options;
        uint64_t now = clock_now_ns();

        if (options->on_progress && (loader->told_text_ns == 0 || now - loader->told_text_ns >= PROGRESS_NS)) {
                options->on_progress(options->userdata, text);
                loader->told_text_ns = now;
        }
        if (options->on_wait && (loader->told_wait_ns == 0 || now - loader->told_wait_ns >= WAIT_NS)) {
                const struct dlc_progress told = { .dataset = options->dataset,
                                                   .text = text,
                                                   .phase = progress->phase,
                                                   .unit = progress->unit,
                                                   .done = progress->done,
                                                   .total = progress->total,
                                                   .seconds = progress->seconds,
                                                   .per_second = progress->per_second,
                                                   .seconds_left = progress->seconds_left };

                options->on_wait(options->userdata, &told);
                loader->told_wait_ns = now;
        }
}

void dli_progress_look(struct dlc_loader *loader) {
        struct dli_connection *connection = &loader->connection;
        char sentence[DLP_TEXT_MAX], text[DLP_TEXT_MAX];
        uint64_t now = clock_now_ns();

        if (!loader->answers_waits || (!loader->options.on_wait && !loader->options.on_progress))
                return;
        if (connection->asked == 0 && (loader->asked_ns == 0 || now - loader->asked_ns >= ASK_NS)) {
                if (connection->waited_for.phase[0] && now - loader->asked_ns < FRESH_NS) {
                        dlp_progress_sentence(&connection->waited_for, sentence);
                        shorten(text, sizeof(text), "%s: %s", loader->options.dataset, sentence);
                        dli_progress_tell(loader, &connection->waited_for, text);
                }
                connection->waited_for.phase[0] = '\0'; /* it was so then */
                loader->asked_ns = now;
                dli_connection_ask(connection, loader->epoch);
        }
}

int dlc_progress_line(const struct dlc_progress *progress, unsigned n_columns, bool utf8, char *buffer, size_t size) {
        struct dlp_progress numbers = { .phase = "" };
        char line[DLP_PROGRESS_LINE_MAX];
        size_t n;

        if (!progress || !buffer || size == 0)
                return dli_refuse(-EINVAL, "dlc_progress_line: progress and buffer must not be NULL, size not 0");
        if (progress->phase && *progress->phase) {
                snprintf(numbers.phase, sizeof(numbers.phase), "%s", progress->phase);
                snprintf(numbers.unit, sizeof(numbers.unit), "%s", progress->unit ? progress->unit : "");
                numbers.done = progress->done;
                numbers.total = progress->total;
                numbers.seconds = progress->seconds;
                numbers.per_second = progress->per_second;
                numbers.seconds_left = progress->seconds_left;
                dlp_progress_line(&numbers, progress->dataset ? progress->dataset : "", n_columns, utf8, line);
        } else {
                dlp_progress_text(progress->text ? progress->text : "", n_columns, utf8, line);
        }
        n = strlen(line);
        n = utf8_valid(line, n < size ? n : size - 1);
        memcpy(buffer, line, n);
        buffer[n] = '\0';
        return 0;
}
