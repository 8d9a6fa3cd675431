#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fetch/origin/origin.h"
#include "daemon/staging/run/run.h"
#include "proto/base/cleanup.h"

/* What must be the same on all nodes: in words, so that an error can show the difference. */
static void describe_dataset(const struct run *run, char text[DLP_TEXT_MAX]) {
        const struct dataset_setting *dataset = run->dataset;

        snprintf(text, DLP_TEXT_MAX,
                 "origin %.180s, origin_kind %s, format %s, unpack %s, prepare \"%.80s\", pack %s, "
                 "shard_size %llu",
                 dataset->origin, dataset->origin_kind, dataset->format, dataset->unpack, dataset->prepare,
                 dataset->pack ? "yes" : "no", (unsigned long long)dataset->shard_size);
}

/* Two nodes whose configurations differ would bring half of each. */
static int compare_settings(struct run *run, struct why *why) {
        _cleanup_(freep) char(*all)[DLP_TEXT_MAX] = NULL;
        char mine[DLP_TEXT_MAX] = "";

        describe_dataset(run, mine);
        all = run_gather(run, mine, sizeof(mine));
        for (uint32_t node = 1; node < run->n_nodes; node++)
                if (strcmp(all[0], all[node]) != 0)
                        return why_set(why, -EINVAL, "dataset \"%s\" is configured differently: on %s %s; on %s %s",
                                       run->dataset->name, cluster_name(run->cluster, 0), all[0],
                                       cluster_name(run->cluster, node), all[node]);
        return 0;
}

static void stage_survey_on_progress(void *userdata, uint64_t n_files) {
        struct run *run = userdata;

        atomic_store(&run->n_steps_done, n_files);
}

static int ask_origin(struct run *run, void *argument, struct why *why) {
        const struct dataset_setting *dataset = run->dataset;
        struct origin_options options = {
                .url = dataset->origin,
                .kind = dataset->origin_kind,
                .unpack = dataset->unpack,
                .n_connections = (uint32_t)dataset->connections,
                .progress = stage_survey_on_progress,
                .userdata = run,
                .cancel = run->cancel,
        };

        return origin_survey(run->http, &options, argument, why);
}

int stage_survey(struct run *run, struct plan **ret_plan, struct why *why) {
        _cleanup_(plan_freep) struct plan *plan = NULL;
        int r;

        run_phase(run, "surveying");
        r = compare_settings(run, why);
        if (r == 0 && run->node == 0)
                r = run_aside(run, ask_origin, &plan, why);
        r = agree(run, r, why);
        if (r == 0)
                r = share_plan(run, "the first node's plan", &plan, why);
        if (r < 0)
                return r;
        atomic_store(&run->n_steps_done, 0);
        snprintf(run->source_digest, sizeof(run->source_digest), "%s", plan_digest(plan));
        *ret_plan = TAKE_PTR(plan);
        return 0;
}
