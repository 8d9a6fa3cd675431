/* dataloaderd: the command line. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/base/cell/inside.h"
#include "daemon/base/log.h"
#include "daemon/base/machine/cpus.h"
#include "daemon/codec/cell/render_inside.h"
#include "daemon/codec/cell/render_messages.h"
#include "daemon/core/config.h"
#include "daemon/core/core_private.h"
#include "daemon/core/daemon.h"
#include "daemon/plugin/plugin_inside.h"
#include "proto/version.h"

struct arguments {
        const char *config_path;
        const char *socket;
        bool check_config, is_private, in_foreground;
};

static void main_print_help(void) {
        printf("Usage: dataloaderd [OPTION]...\n"
               "Feeds the training processes of this node: reads, decodes and augments samples on one pool of\n"
               "workers and puts finished batches into shared memory. Stays in the foreground, logs to stderr.\n"
               "\n"
               "  -c, --config FILE   configuration (default: %s)\n"
               "      --check-config  check the configuration and exit\n"
               "      --print-config  print a configuration with every key, its default and what it means\n"
               "      --socket PATH   listen here instead of at the path in the configuration\n"
               "      --private       start a daemon for this user alone, unless one runs; return when it serves\n"
               "      --foreground    with --private: stay in the foreground\n"
               "      --version       print the version and exit\n"
               "      --help          print this and exit\n"
               "\n"
               "SIGHUP reads the configuration again, SIGTERM completes what is begun and ends, a second SIGTERM ends "
               "at once.\n"
               "Exit codes: 0 ended on request, 64 usage, 69 something needed is not available, 71 system error,\n"
               "75 a private daemon runs already, 78 configuration.\n"
               "\n"
               "See dataloaderd(8), dataloaderd.conf(5), dlctl(1).\n",
               CONFIG_DEFAULT_PATH);
}

/* Returns -1 to go on, else the exit code. */
static int parse_arguments(int argc, char **argv, struct arguments *arguments) {
        enum {
                OPTION_CHECK = 256,
                OPTION_PRINT,
                OPTION_SOCKET,
                OPTION_PRIVATE,
                OPTION_FOREGROUND,
                OPTION_VERSION,
                OPTION_HELP
        };
        static const struct option OPTIONS[] = {
                { "config", required_argument, NULL, 'c' },
                { "check-config", no_argument, NULL, OPTION_CHECK },
                { "print-config", no_argument, NULL, OPTION_PRINT },
                { "socket", required_argument, NULL, OPTION_SOCKET },
                { "private", no_argument, NULL, OPTION_PRIVATE },
                { "foreground", no_argument, NULL, OPTION_FOREGROUND },
                { "version", no_argument, NULL, OPTION_VERSION },
                { "help", no_argument, NULL, OPTION_HELP },
                { 0 },
        };
        int option;

        while ((option = getopt_long(argc, argv, "c:", OPTIONS, NULL)) >= 0)
                switch (option) {
                case 'c':
                        arguments->config_path = optarg;
                        break;
                case OPTION_CHECK:
                        arguments->check_config = true;
                        break;
                case OPTION_PRINT:
                        config_print(stdout);
                        return 0;
                case OPTION_SOCKET:
                        arguments->socket = optarg;
                        break;
                case OPTION_PRIVATE:
                        arguments->is_private = true;
                        break;
                case OPTION_FOREGROUND:
                        arguments->in_foreground = true;
                        break;
                case OPTION_VERSION:
                        printf("dataloaderd %s\n", DLP_FULL_VERSION);
                        return 0;
                case OPTION_HELP:
                        main_print_help();
                        return 0;
                default:
                        fprintf(stderr, "Try 'dataloaderd --help'.\n");
                        return EX_USAGE;
                }
        if (optind < argc) {
                fprintf(stderr, "dataloaderd: unexpected argument '%s'\nTry 'dataloaderd --help'.\n", argv[optind]);
                return EX_USAGE;
        }
        if (arguments->is_private && (arguments->config_path || arguments->socket || arguments->check_config)) {
                fprintf(stderr, "dataloaderd: --private has no configuration and no other socket; see dataloaderd(8)\n"
                                "Try 'dataloaderd --help'.\n");
                return EX_USAGE;
        }
        if (arguments->in_foreground && !arguments->is_private) {
                fprintf(stderr, "dataloaderd: stays in the foreground anyway; --foreground is for --private\n"
                                "Try 'dataloaderd --help'.\n");
                return EX_USAGE;
        }
        return -1;
}

/* Its settings come from what this user may have. */
static int run_private(bool in_foreground) {
        struct private_daemon private;
        struct daemon_options options = { .private = &private };
        struct config config = { 0 };
        struct why why;
        int r = private_begin(&private, in_foreground, &why);

        if (r > 0)
                return r == PRIVATE_SERVES ? 0 : r;
        if (r < 0) {
                log_error("core", "%s", why.text);
                private_end(&private);
                return r == -EADDRINUSE ? EX_RUNNING : EX_UNAVAILABLE;
        }
        r = private_settings(&private, &config.settings, &why);
        if (r < 0) {
                log_error("config", "%s", why.text);
                private_end(&private);
                return EX_CONFIG;
        }
        cpus_take_all();
        r = daemon_run(&config, &options);
        config_fini(&config);
        private_end(&private);
        return r;
}

/* What this program is in the cells that the daemon starts. */
static const struct cell_kind CELL_KINDS[] = {
        { RENDER_KIND, render_prepare, render_order, render_forget },
        { PLUGIN_KIND, plugin_prepare, plugin_order, NULL },
        { 0 },
};

int main(int argc, char **argv) {
        struct arguments arguments = { 0 };
        struct daemon_options options;
        struct config config;
        struct why why;
        int r;

        cell_inside(argc, argv, CELL_KINDS);
        r = parse_arguments(argc, argv, &arguments);
        if (r >= 0)
                return r;
        if (arguments.is_private)
                return run_private(arguments.in_foreground);
        if (!arguments.config_path)
                arguments.config_path = CONFIG_DEFAULT_PATH;
        options = (struct daemon_options){ .config_path = arguments.config_path,
                                           .socket_is_fixed = arguments.socket != NULL };
        if (config_read(arguments.config_path, &config, &why) < 0) {
                log_error("config", "%s", why.text);
                return EX_CONFIG;
        }
        if (arguments.socket) {
                free(config.settings.socket);
                config.settings.socket = strdup(arguments.socket);
        }
        if (arguments.check_config)
                printf("%s: ok, %zu datasets\n", arguments.config_path, config.n_datasets);
        else
                r = daemon_run(&config, &options);
        config_fini(&config);
        return r < 0 ? 0 : r;
}
