#include "proto/wait_reason.h"

#include <stdio.h>

#include "proto/base/shown/shorten.h"

#define NS_PER_S       1000000000u
#define ENOUGH_MINUTES 120u /* seconds that are told as minutes from here on */

static unsigned long long passed_s(const struct dlp_wait *wait, uint64_t now_ns) {
        return now_ns > wait->since_ns ? (now_ns - wait->since_ns) / NS_PER_S : 0;
}

static void outage_text(const struct dlp_wait *wait, uint64_t now_ns, char buffer[DLP_TEXT_MAX]) {
        uint64_t left_s = wait->until_ns > now_ns ? (wait->until_ns - now_ns + NS_PER_S - 1) / NS_PER_S : 0;
        bool is_long = left_s >= ENOUGH_MINUTES;

        shorten(buffer, DLP_TEXT_MAX, "%s; trying again for %llu %s", wait->detail,
                (unsigned long long)(is_long ? (left_s + 59) / 60 : left_s), is_long ? "min" : "s");
}

const char *dlp_wait_sentence(const struct dlp_wait *wait, const char *dataset, uint64_t now_ns,
                              char buffer[DLP_TEXT_MAX]) {
        unsigned long long s = passed_s(wait, now_ns);

        buffer[0] = '\0';
        switch (wait->reason) {
        case DLP_WAIT_NOTHING:
        case DLP_WAIT_SLOT:
        case DLP_WAIT_ORDER:
                break;
        case DLP_WAIT_SAMPLES:
                shorten(buffer, DLP_TEXT_MAX, "%s: the stream %s; %llu samples so far", dataset,
                        wait->detail[0] ? wait->detail : "is being read", (unsigned long long)wait->n_samples);
                break;
        case DLP_WAIT_MEMORY:
                shorten(buffer, DLP_TEXT_MAX, "%s: the stream waits for memory: %s", dataset, wait->detail);
                break;
        case DLP_WAIT_ENDING:
                shorten(buffer, DLP_TEXT_MAX,
                        "python(%s): a worker process has ended, and for %llu s it has not been said how: the process "
                        "that supervises may be stopped",
                        wait->detail, s);
                break;
        case DLP_WAIT_FUNCTION:
                shorten(buffer, DLP_TEXT_MAX,
                        "python(%s): worker process %u has been at sample %llu%s for %llu s; it may for %llu s",
                        wait->detail, wait->process, (unsigned long long)wait->sample,
                        wait->n_samples > 1 ? " or one after it" : "", s,
                        (unsigned long long)(wait->until_ns - wait->since_ns) / NS_PER_S);
                break;
        case DLP_WAIT_PROCESS:
                shorten(buffer, DLP_TEXT_MAX,
                        "python(%s): waiting for a worker process of the trainer, for %llu s so far", wait->detail, s);
                break;
        case DLP_WAIT_READ:
                shorten(buffer, DLP_TEXT_MAX, "%s: reading %s has not come back for %llu s", dataset, wait->detail, s);
                break;
        case DLP_WAIT_OUTAGE:
                outage_text(wait, now_ns, buffer);
                break;
        case DLP_WAIT_ORIGIN:
                shorten(buffer, DLP_TEXT_MAX, "%s: waiting for the origin for %llu s: %s", dataset, s, wait->detail);
                break;
        default:
                shorten(buffer, DLP_TEXT_MAX, "%s", wait->detail);
        }
        return buffer;
}
