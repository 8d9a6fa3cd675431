/* dataloaderd-stage: brings a dataset onto the nodes, once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/base/log.h"
#include "daemon/core/config.h"
#include "daemon/staging/nodes/cluster.h"
#include "daemon/staging/nodes/launch.h"
#include "daemon/staging/run/report.h"
#include "daemon/staging/run/run.h"

static const struct dataset_setting *find_dataset(const struct settings *settings, const char *name) {
        for (size_t i = 0; i < settings->n_datasets; i++)
                if (strcmp(settings->datasets[i].name, name) == 0)
                        return &settings->datasets[i];
        return NULL;
}

/* Under mpirun we are one of several already; else the configuration or the command line may name nodes. */
static int run_or_launch(const struct stage_options *options, const struct settings *settings,
                         const struct dataset_setting *dataset, char **argv) {
        const char *nodes = options->nodes ? options->nodes : settings->stage_nodes;
        struct launch_options launching = {
                .hosts = nodes,
                .network = options->network ? options->network : settings->stage_network,
                .agent = options->agent ? options->agent : "",
                .arguments = argv,
                .timeout_s = options->timeout_s,
        };
        struct why why;
        int r;

        if (cluster_is_launched() || !nodes[0])
                return run_stage(options, settings, dataset);
        report_lend_terminal();
        r = launch(&launching, &why);
        if (why.text[0])
                log_error("stage", "%s", why.text);
        return r < 0 ? EX_UNAVAILABLE : r;
}

int main(int argc, char **argv) {
        struct stage_options options;
        const struct dataset_setting *dataset;
        struct settings settings;
        struct why why;
        int r = options_parse(argc, argv, &options);

        if (r != OPTIONS_GO_ON)
                return r;
        if (config_read(options.config_path, &settings, &why) < 0) {
                log_error("config", "%s", why.text);
                return EX_CONFIG;
        }
        dataset = find_dataset(&settings, options.dataset);
        if (!dataset || !dataset->origin[0]) {
                log_error("stage",
                          dataset ? "%s: dataset \"%s\" has no origin: it lies at its path already"
                                  : "%s: there is no dataset \"%s\"",
                          options.config_path, options.dataset);
                r = EX_CONFIG;
        } else {
                r = run_or_launch(&options, &settings, dataset, argv);
        }
        settings_fini(&settings);
        return r;
}
