/* staging/nodes/launch_said.h: what a launcher and its agents say on stderr and stdout, taken apart.
 *
 * A launcher passes on what the processes write and speaks in between, in paragraphs between two rules, most of
 * which are advice to somebody who debugs MPI. Of those that are known one sentence is kept which names the node; what
 * is not known is passed on as it is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/staging/nodes/launcher.h"

#define SAID_TEXT_SIZE     8192u /* a paragraph; what is longer is none */
#define SAID_LINE_SIZE     1024u
#define SAID_SENTENCE_SIZE 400u

/* The caller sets the first four; the rest begins with zeros. */
struct said {
        const struct launcher *launcher;
        const char *hosts; /* for messages */
        /* Gets what is the processes' own, at once, and what is not known. */
        void (*pass_on)(void *userdata, const char *bytes, size_t n_bytes);
        void *userdata;

        /* ---- what was understood so far ---- */
        unsigned meaning; /* enum said_meaning, of all paragraphs */
        bool has_begun;   /* a process of ours runs (staging/nodes/cluster_guard.h): all nodes have come up */
        int last_word;    /* the status with which a process of ours said that it ends the run; 0: none did. What mpirun
                           * says after that follows from it, and is no sentence */
        char sentence[SAID_SENTENCE_SIZE]; /* why the launcher ended it; "": it did not say, or is not to blame */
        char error[SAID_SENTENCE_SIZE];    /* the first error inside the launcher that it reported on a line of its own.
                                            * Often it follows from the end of the run, so it explains a run only where
                                            * nothing else does */

        /* ---- what is still being read ---- */
        char line[SAID_LINE_SIZE]; /* what is held of the current line: it may be one of the launcher's */
        size_t n_line;
        bool is_passing; /* the current line is not: its rest goes on as it comes */
        bool in_paragraph;
        char text[SAID_TEXT_SIZE]; /* of the paragraph, with the rule before it */
        size_t n_text;
        char before[240]; /* of what the agents said before anything ran */
};

void said_feed(struct said *said, const char *bytes, size_t n_bytes);
void said_end(struct said *said); /* nothing more comes */

/* It said that it is about to end the run. */
static inline bool said_is_ending(const struct said *said) {
        return said->meaning & SAID_ENDING;
}

/* It said that a process of ours ended the run, by itself: its exit status is ours. */
static inline bool said_program_ended_it(const struct said *said) {
        return (said->meaning & SAID_PROGRAM) == SAID_PROGRAM;
}
