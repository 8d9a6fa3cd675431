#include "daemon/staging/run/stage_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/core/config.h"
#include "proto/base/cleanup.h"
#include "proto/version.h"

static void stage_options_print_help(void) {
        printf("Usage: dataloaderd-stage [OPTION]... DATASET\n"
               "Brings a dataset from its origin onto this node, or once onto all nodes: each byte leaves the origin\n"
               "once and is spread between the nodes. Verified, resumable; nothing is visible before all of it is "
               "there.\n"
               "\n"
               "  -c, --config FILE     configuration (default: %s)\n"
               "      --dry-run         say what would be moved, and move nothing\n"
               "      --verify          read again what is there, and fetch what is damaged\n"
               "      --nodes LIST      hosts, separated by commas: started with mpirun (default: stage_nodes of the\n"
               "                        configuration; \"\": this node alone)\n"
               "      --network CIDR    where nodes talk to each other (default: stage_network)\n"
               "      --agent COMMAND   how a host is reached (default: ssh)\n"
               "      --timeout SECONDS end what has not ended by then (default: none)\n"
               "      --format text|json|quiet   how progress is shown: bars or lines, JSON lines, not at all\n"
               "      --version         print the version and end\n"
               "      --help            print this and end\n"
               "\n"
               "Started by mpirun or srun, a process a node, it stages for all of them.\n"
               "Exit codes: 0 staged, 64 usage, 69 the origin or a node is not available, 71 system error (disk),\n"
               "75 another staging is at work, 76 the origin's files are not what they should be, 78 configuration,\n"
               "130 and 143 interrupted.\n"
               "\n"
               "See dataloaderd-stage(8), dataloaderd.conf(5).\n",
               CONFIG_DEFAULT_PATH);
}

static int stage_options_usage(const char *text, const char *value) {
        fprintf(stderr, "dataloaderd-stage: %s%s%s\nTry 'dataloaderd-stage --help'.\n", text, value ? ": " : "",
                value ? value : "");
        return EX_USAGE;
}

static int parse_style(const char *text, enum report_style *ret_style) {
        static const char *const STYLES[] = {
                [REPORT_AUTO] = "text", [REPORT_JSON] = "json", [REPORT_QUIET] = "quiet"
        };

        for (size_t i = 0; i < ARRAY_SIZE(STYLES); i++)
                if (strcmp(text, STYLES[i]) == 0) {
                        *ret_style = (enum report_style)i;
                        return 0;
                }
        return -EINVAL;
}

static int parse_seconds(const char *text, uint32_t *ret_seconds) {
        char *end;
        unsigned long value;

        errno = 0;
        value = strtoul(text, &end, 10);
        if (errno != 0 || end == text || *end || text[0] == '-' || value > 31536000)
                return -EINVAL;
        *ret_seconds = (uint32_t)value;
        return 0;
}

int stage_options_parse(int argc, char **argv, struct stage_options *ret_options) {
        enum {
                OPTION_DRY_RUN = 256,
                OPTION_VERIFY,
                OPTION_NODES,
                OPTION_NETWORK,
                OPTION_AGENT,
                OPTION_TIMEOUT,
                OPTION_FORMAT,
                OPTION_VERSION,
                OPTION_HELP
        };
        static const struct option OPTIONS[] = {
                { "config", required_argument, NULL, 'c' },
                { "dry-run", no_argument, NULL, OPTION_DRY_RUN },
                { "verify", no_argument, NULL, OPTION_VERIFY },
                { "nodes", required_argument, NULL, OPTION_NODES },
                { "network", required_argument, NULL, OPTION_NETWORK },
                { "agent", required_argument, NULL, OPTION_AGENT },
                { "timeout", required_argument, NULL, OPTION_TIMEOUT },
                { "format", required_argument, NULL, OPTION_FORMAT },
                { "version", no_argument, NULL, OPTION_VERSION },
                { "help", no_argument, NULL, OPTION_HELP },
                { 0 },
        };
        struct stage_options options = { .config_path = CONFIG_DEFAULT_PATH };
        int option;

        while ((option = getopt_long(argc, argv, "c:", OPTIONS, NULL)) >= 0)
                switch (option) {
                case 'c':
                        options.config_path = optarg;
                        break;
                case OPTION_DRY_RUN:
                        options.dry_run = true;
                        break;
                case OPTION_VERIFY:
                        options.verify = true;
                        break;
                case OPTION_NODES:
                        options.nodes = optarg;
                        break;
                case OPTION_NETWORK:
                        options.network = optarg;
                        break;
                case OPTION_AGENT:
                        options.agent = optarg;
                        break;
                case OPTION_TIMEOUT:
                        if (parse_seconds(optarg, &options.timeout_s) < 0)
                                return stage_options_usage("--timeout takes whole seconds, a year at most, not",
                                                           optarg);
                        break;
                case OPTION_FORMAT:
                        if (parse_style(optarg, &options.style) < 0)
                                return stage_options_usage("--format takes text, json or quiet, not", optarg);
                        break;
                case OPTION_VERSION:
                        printf("dataloaderd-stage %s\n", DLP_FULL_VERSION);
                        return 0;
                case OPTION_HELP:
                        stage_options_print_help();
                        return 0;
                default:
                        fprintf(stderr, "Try 'dataloaderd-stage --help'.\n");
                        return EX_USAGE;
                }
        if (optind == argc)
                return stage_options_usage("which dataset?", NULL);
        if (optind + 1 < argc)
                return stage_options_usage("one dataset at a time; unexpected argument", argv[optind + 1]);
        options.dataset = argv[optind];
        *ret_options = options;
        return OPTIONS_GO_ON;
}
