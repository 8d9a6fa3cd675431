/* staging/nodes/launcher.h: a program that starts this one on all nodes, as launch.c sees it.
 *
 * What a launcher is called with, and what its English words mean, is known in its own file (launcher_NAME.c)
 * and nowhere else. There is one so far: Open MPI's mpirun. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/staging/nodes/launch.h"
#include "proto/base/why.h"

#define LAUNCH_WORDS_MAX  256u
#define LAUNCH_HOSTS_SIZE 65536u

struct launch_command {
        const char *words[LAUNCH_WORDS_MAX]; /* ends with NULL; the first is the program */
        uint32_t n_words;
        char hosts[LAUNCH_HOSTS_SIZE]; /* comma-separated */
        uint32_t n_hosts;
        char timeout[16];
};

/* What a paragraph of the launcher's means for the run. */
enum said_meaning {
        SAID_NOISE = 0,                 /* a follow-up, or advice */
        SAID_ENDING = 1,                /* it ends the run */
        SAID_PROGRAM = 2 | SAID_ENDING, /* ... since one of our processes ended so */
        SAID_CAUSE = 4 | SAID_ENDING,   /* ... by itself: the sentence says why */
};

struct said_paragraph {
        const char *has; /* a text in it, by which it is known */
        enum said_meaning meaning;
        const char *sentence; /* NULL: none. "{text}": the word after that text in the paragraph; "{}": what was said
                               * before anything ran */
};

struct launcher {
        const char *name;    /* of the program, for messages */
        const char *package; /* where it comes from */
        const char *agent;   /* what it starts on a node */
        int statuses_from;   /* its exit statuses from here on are its own; those below are of our processes */

        /* Writes the command line. Texts of the options are not copied. -EINVAL, -E2BIG with `why`. */
        int (*compose)(struct launch_command *command, const struct launch_options *options, struct why *why);

        /* Which nodes were called and did not come up: their names into `names`, and how many. Looks at /proc. */
        uint32_t (*late_hosts)(pid_t pid, const char *hosts, char *names, size_t size);

        /* Is this the line before and after a paragraph of its own? */
        bool (*is_rule)(const char *line, size_t n_bytes);

        /* May these bytes be the beginning of one of its lines? What may not is a process's own, and passed on at once.
         */
        bool (*may_be_own)(const char *bytes, size_t n_bytes);

        const struct said_paragraph *paragraphs;
        size_t n_paragraphs;
        const char *const *noisy_lines; /* outside of paragraphs: texts in lines that nobody needs */
        size_t n_noisy_lines;
        const char *error_line; /* a text in those noisy lines that report an error inside the launcher itself */
};

extern const struct launcher LAUNCHER_OPENMPI;
