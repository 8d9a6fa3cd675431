/* dataloaderd-stage: brings a dataset onto the nodes, once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/base/log.h"
#include "daemon/core/config.h"
#include "daemon/staging/nodes/cluster.h"
#include "daemon/staging/nodes/launch.h"
#include "daemon/staging/run/owner.h"
#include "daemon/staging/run/run.h"
#include "daemon/staging/run/stage_report.h"
#include "proto/base/nearest.h"

/* What a configuration needs for the dataset that was asked for, by its name or, without knowing better, by a path. */
static void stage_main_write_section(const char *asked, char *text, size_t size) {
        const char *slash = strrchr(asked, '/'), *name = slash && slash[1] ? slash + 1 : asked;

        if (slash)
                snprintf(text, size,
                         "dataset \"%.64s\" { path = \"%.256s\" origin = \"https://HOST/%.64s/manifest.jsonl\" }", name,
                         asked, name);
        else
                snprintf(text, size,
                         "dataset \"%.64s\" { path = \"/data/%.64s\" origin = \"https://HOST/%.64s/manifest.jsonl\" }",
                         name, name, name);
}

/* Without the daemon's configuration, as after an installation with pip, it has to be said what to write. */
static int refuse_config(const struct stage_options *options, int error, const struct why *why) {
        char section[768];

        stage_main_write_section(options->dataset, section, sizeof(section));
        if (error == -ENOENT)
                log_error("config",
                          "%s. A configuration says where a dataset comes from and where it is to lie: write a file "
                          "with %s and name it with --config FILE; see dataloaderd.conf(5)",
                          why->text, section);
        else
                log_error("config", "%s", why->text);
        return EX_CONFIG;
}

static int refuse_dataset(const struct stage_options *options, const struct config *config,
                          const struct dataset_setting *dataset) {
        struct nearest nearest;
        char section[768];

        if (dataset) {
                log_error("stage", "%s: dataset \"%s\" has no origin: it lies at its path already",
                          options->config_path, options->dataset);
                return EX_CONFIG;
        }
        nearest_begin(&nearest, options->dataset, strlen(options->dataset));
        for (size_t i = 0; i < config->n_datasets; i++)
                nearest_offer(&nearest, config->datasets[i].name);
        stage_main_write_section(options->dataset, section, sizeof(section));
        log_error("stage", "%s: there is no dataset \"%s\"%s; it needs a section there, such as %s",
                  options->config_path, options->dataset, nearest_hint(&nearest), section);
        return EX_CONFIG;
}

static int refuse_owner(const struct why *why) {
        log_error("stage", "%s", why->text);
        return EX_OSERR;
}

static const struct dataset_setting *find_dataset(const struct config *config, const char *name) {
        for (size_t i = 0; i < config->n_datasets; i++)
                if (strcmp(config->datasets[i].name, name) == 0)
                        return &config->datasets[i];
        return NULL;
}

/* Under mpirun we are one of several already; else the configuration or the command line may name nodes. */
static int run_or_launch(const struct stage_options *options, const struct config *config,
                         const struct dataset_setting *dataset, char **argv) {
        const char *nodes = options->nodes ? options->nodes : config->settings.stage_nodes;
        struct launch_options launching = {
                .hosts = nodes,
                .network = options->network ? options->network : config->settings.stage_network,
                .agent = options->agent ? options->agent : "",
                .arguments = argv,
                .timeout_s = options->timeout_s,
        };
        struct why why;
        int r;

        if (cluster_is_launched() || !nodes[0])
                return run_stage(options, dataset);
        report_lend_terminal();
        r = launch(&launching, &why);
        if (why.text[0])
                log_error("stage", "%s", why.text);
        return r < 0 ? EX_UNAVAILABLE : r;
}

int main(int argc, char **argv) {
        struct stage_options options;
        const struct dataset_setting *dataset;
        struct config config;
        struct why why;
        int r = stage_options_parse(argc, argv, &options);

        if (r != OPTIONS_GO_ON)
                return r;
        r = config_read(options.config_path, &config, &why);
        if (r < 0)
                return refuse_config(&options, r, &why);
        dataset = find_dataset(&config, options.dataset);
        if (!dataset || !dataset->origin[0])
                r = refuse_dataset(&options, &config, dataset);
        else if (owner_become(dataset->path, &why) < 0)
                r = refuse_owner(&why);
        else
                r = run_or_launch(&options, &config, dataset, argv);
        config_fini(&config);
        return r;
}
