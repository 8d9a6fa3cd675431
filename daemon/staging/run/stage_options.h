/* staging/run/stage_options.h: the command line of dataloaderd-stage. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/staging/run/stage_report.h"

struct stage_options {
        const char *config_path;
        const char *dataset;
        const char *nodes;   /* NULL: the configuration's; "": this one alone */
        const char *network; /* NULL: the configuration's */
        const char *agent;   /* how nodes are reached; NULL: ssh */
        uint32_t timeout_s;  /* of the whole; 0: none */
        enum report_style style;
        bool verify;  /* read everything again, fetch what is damaged */
        bool dry_run; /* say what would move */
};

#define OPTIONS_GO_ON (-1)

/* Returns OPTIONS_GO_ON, else the exit code: help and version were asked for, or the line is wrong and it was said. */
int stage_options_parse(int argc, char **argv, struct stage_options *ret_options);
