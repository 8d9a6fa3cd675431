#include "client/dlctl/diagnose/confirming.h"

#include <stdio.h>
#include <string.h>

bool confirming_text(const Dlp__Job *job, char *text, size_t size) {
        const Dlp__ReplayReply *replay = job->replay;

        if (!replay)
                return false;
        if (strcmp(replay->state, "keeping") == 0)
                snprintf(text, size, "copies of %u of the next %u batches are there", replay->n_kept,
                         replay->n_to_keep);
        else if (strcmp(replay->state, "waiting") == 0)
                snprintf(text, size, "its ranks go to the place where all of them begin");
        else
                snprintf(text, size, "%u of %u batches were served again", replay->n_least, replay->n_total);
        return true;
}
