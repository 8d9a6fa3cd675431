#include "client/lib/progress/progress_message.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/text.h"
#include "proto/base/utf8.h"

static void progress_message_text(char *text, size_t size, const char *from) {
        snprintf(text, size, "%.*s", (int)utf8_valid(from, strnlen(from, size - 1)), from);
        text_make_printable(text);
}

/* A number that is not negative. */
static double real(double value) {
        return isfinite(value) && value > 0 ? value : 0;
}

void dli_progress_take(const Dlp__Progress *message, struct dlp_progress *ret_progress) {
        *ret_progress = (struct dlp_progress){ 0 };
        if (!message)
                return;
        progress_message_text(ret_progress->phase, sizeof(ret_progress->phase), message->phase);
        progress_message_text(ret_progress->unit, sizeof(ret_progress->unit), message->unit);
        ret_progress->total = message->total;
        ret_progress->done = message->total > 0 && message->done > message->total ? message->total : message->done;
        ret_progress->seconds = real(message->seconds);
        ret_progress->per_second = real(message->per_second);
        ret_progress->seconds_left = isfinite(message->seconds_left) && message->seconds_left >= 0
                                             ? message->seconds_left
                                             : -1;
}
