/* dlctl/diagnose/confirm.h: compares a verdict with what happens when the trainer never waits for data.
 *
 * The daemon serves each rank of the job its latest batches again (daemon/pipeline/replay/replay.h): they cost neither
 * reading nor decoding, so they are always ready, and the rate is what the trainer can take. The verdict has said what
 * that is, its `demand`: the rate divided by the share of time that was not waited. Every other prediction is limited
 * by it. */
#pragma once

#include "client/dlctl/control.h"
#include "client/lib/diagnose/verdict.h"

struct confirmation {
        uint64_t n_batches; /* that were served again and are counted here, of all ranks */
        double seconds;     /* in which the trainer took these */
        double predicted;   /* samples/s: demand of the verdict */
        double rate;        /* samples/s, seen */
        double wait_share;  /* that it waited all the same */
        char sentence[VERDICT_TEXT_MAX];
};

/* Does it for the job of that name, whose verdict this is; shows how far it is. An interrupt ends it early, at the same
 * batch for all ranks. Returns an exit code; unless it is EXIT_DONE an error has been printed, or there was an
 * interrupt. */
int confirm_run(struct control *control, const Dlp__Job *job, const struct verdict *verdict,
                struct confirmation *ret_confirmation);
