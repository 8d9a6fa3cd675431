/* store/record/record_progress.h: how far a staging is, told from one process to another: the file `progress` of a place,
 * which the staging program writes once a second and the daemon reads, and the JSON lines that scripts read.
 *
 * One line of JSON. It is written under another name and renamed, so that a reader sees a whole one; nothing depends on
 * it, so it is not synced. What is read was written by another program, perhaps another version of it or another user:
 * its length, its numbers and its texts are bounded here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/record/record_place.h"
#include "proto/base/why.h"

#define PROGRESS_FILE_MAX  65536u /* bytes of the file; what is longer is none */
#define PROGRESS_NODES_MAX 16u    /* nodes in the file: those that are furthest behind */
#define PROGRESS_NAME_SIZE 64u    /* of a node's name, with NUL */
#define PROGRESS_ABSENT    1      /* positive outcome of progress_read(): no staging has said anything */

/* What a node says about itself. */
struct node_progress {
        char node[PROGRESS_NAME_SIZE]; /* its host's name */
        char doing[64];          /* "writing photos/a.jpg"; "waiting ..." while it can do nothing before others did */
        uint64_t n_bytes_total;  /* of the dataset */
        uint64_t n_bytes_done;   /* present here */
        uint64_t n_bytes_origin; /* fetched from the origin by this node */
        uint64_t n_files_total;
        uint64_t n_files_done;
        uint64_t n_retries;
        uint64_t n_errors;
        char last_error[256];
};

struct progress {
        char dataset[DLP_NAME_MAX];
        char phase[32];            /* "transferring"; staging/run/stage_report.h has them all */
        char result[16];           /* of a run that has ended: "failed"; "" while it is at work */
        char text[DLP_TEXT_MAX];   /* of that: why */
        uint64_t n_bytes_total;    /* of all nodes together, as all numbers here */
        uint64_t n_bytes_done;     /* <= n_bytes_total */
        uint64_t n_bytes_origin;   /* that the origin was asked for */
        uint64_t n_files_total;    /* of the dataset */
        uint64_t n_files_done;     /* by the node that has fewest */
        uint64_t bytes_per_second; /* over the last ten seconds */
        uint64_t seconds_left;     /* UINT64_MAX: nobody knows */
        uint64_t seconds;          /* since the run began */
        uint64_t n_retries;
        uint64_t n_errors;
        uint32_t n_nodes; /* that take part */
        uint32_t n_listed;
        struct node_progress *nodes; /* n_listed of them */
};

/* The line, without a newline at its end; the caller's (free). NULL: no memory. */
char *progress_line(const struct progress *progress);

/* Another such line: something that a person should know. {"dataset":...,"level":...,"message":...} */
char *progress_message(const char *dataset, const char *level, const char *text);

/* Puts the file in place. An errno with `why`: the folder cannot be written to, the disk is full. */
int progress_write(const struct place *place, const struct progress *progress, struct why *why);

/* Reads the file. *ret_mark (may be NULL) differs from the last one if it was written since. Returns 0, the nodes to be
 * freed with progress_fini(); PROGRESS_ABSENT; -EBADMSG if it is none; another errno with `why`. */
int progress_read(const struct place *place, struct progress *ret_progress, uint64_t *ret_mark, struct why *why);

/* "transferring, 12.3 GiB of 45.6 GiB (27 %), 118.0 MiB/s, 5 min left". Returns `buffer`. */
const char *progress_sentence(const struct progress *progress, char buffer[DLP_TEXT_MAX]);

void progress_fini(struct progress *progress);
