/* proto/base/shown/progress.h: how far a long piece of work is, and how a person is told.
 *
 * The daemon, the library, dlctl and through it Python all describe a wait by one `struct dlp_progress`, and show it in
 * the same words: as a line with a bar on a terminal, as a sentence elsewhere. Rates and the time left are computed
 * here and nowhere else, from what is done and when (rate.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/shown/rate.h"
#include "proto/limits.h"

#define DLP_PHASE_MAX         48u   /* bytes with NUL */
#define DLP_UNIT_MAX          16u   /* bytes with NUL */
#define DLP_PROGRESS_LINE_MAX 2048u /* bytes with NUL: a line of any width that is drawn */
#define DLP_PROGRESS_COLUMNS  250u  /* columns that are used at most */

/* All zeroes: there is nothing to wait for, or nothing is known of it. */
struct dlp_progress {
        char phase[DLP_PHASE_MAX]; /* "indexing", "making the order", "staging: transferring" */
        char unit[DLP_UNIT_MAX];   /* of done and total: "B" for bytes, "files", "samples", ... */
        uint64_t done;
        uint64_t total;      /* 0: not known. It may change while the work goes on, if it is found out on the way */
        double seconds;      /* since it began */
        double per_second;   /* over the last ten seconds; 0: not known, or it stands still */
        double seconds_left; /* below 0: nobody knows */
};

/* Watches one piece of work. One thread. */
struct dlp_pace {
        uint64_t began_ns;
        uint64_t total; /* as told last */
        struct rate rate;
};

void dlp_pace_begin(struct dlp_pace *pace, uint64_t now_ns);

/* `done` of `total` (0: not known) so far. If less is done than before, another pass has begun. Call it as often as you
 * like. */
void dlp_pace_add(struct dlp_pace *pace, uint64_t now_ns, uint64_t done, uint64_t total);

/* Fills in the times; the rest is the caller's. */
void dlp_pace_read(const struct dlp_pace *pace, uint64_t now_ns, struct dlp_progress *progress);

/* "indexing, 12.3 GiB of 45.6 GiB (26 %), 118.0 MiB/s, 5 min left"; "indexing, 120 k files so far". Returns `buffer`.
 */
const char *dlp_progress_sentence(const struct dlp_progress *progress, char buffer[DLP_TEXT_MAX]);

/* One line for a terminal of n_columns, of which the last one stays free, because some would wrap:
 *
 *         photos: indexing ████████▌░░░░░░░░░░░  42 %  12.3 GiB of 29.0 GiB  1.1 GiB/s  15 s left
 *
 * `name` may be any text; what a terminal cannot show becomes '?'. If it is too long its middle is left out, and parts
 * that do not fit are left out as a whole. `utf8`: the terminal shows such characters. No colours, no newline. Returns
 * `buffer`. */
const char *dlp_progress_line(const struct dlp_progress *progress, const char *name, unsigned n_columns, bool utf8,
                              char buffer[DLP_PROGRESS_LINE_MAX]);

/* The same for a text: what of it fits, and a mark at its end if it was cut. */
const char *dlp_progress_text(const char *text, unsigned n_columns, bool utf8, char buffer[DLP_PROGRESS_LINE_MAX]);
