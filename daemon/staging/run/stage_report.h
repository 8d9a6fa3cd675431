/* staging/run/stage_report.h: how far a staging is: bars on a terminal, lines where there is none, JSON lines for scripts;
 * STATUS= for systemd and a line of JSON for the daemon (place: `progress`) beside. First node only, but for the
 * progress file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/staging/nodes/cluster.h"
#include "daemon/store/record/record_place.h"

enum report_style {
        REPORT_AUTO, /* bars if stderr is a terminal, else a line every 10 s */
        REPORT_JSON, /* on stdout, a line a second: {"dataset":...,"phase":...,"nodes":[...]} */
        REPORT_QUIET,
};

struct report;

/* `place` may be NULL (dry run: no progress file). */
int report_new(enum report_style style, const char *dataset, const struct place *place, bool is_first_node,
               struct report **ret_report);

/* From now on there is a progress file at this place. */
void report_set_place(struct report *report, const struct place *place);

/* "surveying", "checking", "transferring", "unpacking", "indexing", "preparing", "publishing". */
void report_phase(struct report *report, const char *phase);

/* Cheap: draws ten times a second, writes the rest once a second. `news`: of each node (on the others: their own
 * alone). Thread: the one that made it. */
void report_update(struct report *report, const struct node_progress *news, uint32_t n_nodes);

/* A line that stays: above the bars on a terminal, an object in JSON ({"message":...,"level":...}). Warnings beyond
 * the first 16 between two updates are only counted. */
void report_say(struct report *report, const char *level, const char *text);

/* Clears the bars and prints how it ended: a sentence, or an object {"result":"staged"|"up-to-date"|"failed",...}. The
 * progress file is removed when it went well, else it keeps the error. NULL is fine. */
void report_end(struct report *report, const char *result, const char *text);

/* For whoever starts this program through a launcher, which puts a pipe between the first node and the terminal: what
 * stderr is shown on goes into the environment (REPORT_TERMINAL_VARIABLE, to be handed on to the nodes), and the first
 * node draws its bars into the pipe. Nothing if stderr is not a terminal. */
#define REPORT_TERMINAL_VARIABLE "DATALOADERD_STAGE_TERMINAL"
void report_lend_terminal(void);
