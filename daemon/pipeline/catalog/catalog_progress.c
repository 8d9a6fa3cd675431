/* How far a dataset is that cannot be served yet. */
#include <stdio.h>

#include "daemon/pipeline/catalog/catalog.h"

static void staging_progress(const struct progress *staging, struct dlp_progress *progress) {
        *progress = (struct dlp_progress){ .seconds = (double)staging->seconds,
                                           .per_second = (double)staging->bytes_per_second,
                                           .seconds_left = -1 };
        snprintf(progress->phase, sizeof(progress->phase), "staging: %s", staging->phase);
        if (staging->n_bytes_total > 0) {
                snprintf(progress->unit, sizeof(progress->unit), "B");
                progress->done = staging->n_bytes_done;
                progress->total = staging->n_bytes_total;
        } else { /* a survey: it counts the files that it finds */
                snprintf(progress->unit, sizeof(progress->unit), "files");
                progress->done = staging->n_files_total;
                progress->per_second = 0;
        }
        if (staging->seconds_left != UINT64_MAX)
                progress->seconds_left = (double)staging->seconds_left;
}

bool catalog_progress(struct catalog_entry *entry, struct dlp_progress *ret_progress) {
        if (entry->state != CATALOG_STAGING)
                return work_read(&entry->work, ret_progress);
        *ret_progress = (struct dlp_progress){ 0 };
        if (!catalog_is_being_staged(entry))
                return false;
        staging_progress(&entry->staged->progress, ret_progress);
        return true;
}
