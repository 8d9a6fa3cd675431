#include "client/lib/diagnose/job_wait.h"

#include <stdio.h>

#include "proto/wait_reason.h"

const char *job_wait_text(const Dlp__Job *job, char buffer[DLP_TEXT_MAX]) {
        const Dlp__WaitReason *reason = job->wait_reason;
        struct dlp_wait wait = { 0 };

        if (reason) {
                wait = (struct dlp_wait){ .reason = reason->reason,
                                          .process = reason->process,
                                          .since_ns = reason->since_ns,
                                          .until_ns = reason->until_ns,
                                          .sample = reason->sample,
                                          .n_samples = reason->n_samples };
                snprintf(wait.detail, sizeof(wait.detail), "%s", reason->detail);
        }
        return dlp_wait_sentence(&wait, job->dataset, job->now_ns, buffer);
}
