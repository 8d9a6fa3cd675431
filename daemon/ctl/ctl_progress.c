#include "daemon/ctl/ctl_progress.h"

Dlp__Progress *tell_progress(Dlp__Progress *message, const struct dlp_progress *progress) {
        dlp__progress__init(message);
        message->phase = (char *)(uintptr_t)progress->phase;
        message->unit = (char *)(uintptr_t)progress->unit;
        message->done = progress->done;
        message->total = progress->total;
        message->seconds = progress->seconds;
        message->per_second = progress->per_second;
        message->seconds_left = progress->seconds_left;
        return message;
}
