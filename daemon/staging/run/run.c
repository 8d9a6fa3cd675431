#include "daemon/staging/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "daemon/data/format.h"
#include "daemon/fetch/local_file.h"
#include "daemon/staging/run/stage_files.h"
#include "daemon/store/record/record_steps.h"
#include "proto/base/cleanup.h"

#define EXIT_BY_SIGNAL 128 /* and its number, as shells say it */

static _Atomic bool is_cancelled;
static _Atomic int cancelled_by = SIGINT;

static void run_on_signal(int signal) {
        cancelled_by = signal;
        if (atomic_exchange(&is_cancelled, true))
                _exit(EXIT_BY_SIGNAL + signal); /* the second one means it */
}

static void catch_signals(void) {
        struct sigaction action = { .sa_handler = run_on_signal };

        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGCHLD, SIG_DFL); /* some parents ignore it: how a command has ended would then not be known */
}

static int run_exit_code_of(int error) {
        switch (-error) {
        case 0:
                return 0;
        case ECANCELED:
                return EXIT_BY_SIGNAL + cancelled_by;
        case EBUSY:
                return EX_TEMPFAIL;
        case EBADMSG:
        case EFBIG:
                return EX_PROTOCOL;
        case EINVAL:
                return EX_CONFIG;
        case ENOSPC:
        case EROFS:
        case ENOMEM:
        case EDQUOT:
        case EEXIST:
        case EXDEV:
                return EX_OSERR;
        default:
                return EX_UNAVAILABLE;
        }
}

/* ---- what there is already ---- */

static bool is_derived(const struct run *run, const struct plan *plan) {
        return plan_has_archives(plan) || run->dataset->pack || run->dataset->prepare[0];
}

static bool stamp_fits(const struct run *run) {
        return strcmp(run->stamp.source, run->source_digest) == 0 && strcmp(run->stamp.prepare, run->next.prepare) == 0;
}

/* The plan of the stamped version, as it was kept beside it. */
static int read_kept_plan(const struct run *run, char **ret_text, size_t *ret_n_bytes) {
        _cleanup_(freep) char *text = NULL;
        char path[PATH_MAX];
        struct stat status;
        int r = place_file(&run->place, run->stamp.version, ".manifest", path);

        if (r == 0 && lstat(path, &status) < 0)
                r = -errno;
        if (r == 0) {
                text = malloc((size_t)status.st_size + 1);
                r = text ? read_file_at(AT_FDCWD, path, text, (uint64_t)status.st_size) : -ENOMEM;
        }
        if (r < 0)
                return r;
        text[status.st_size] = '\0';
        *ret_n_bytes = (size_t)status.st_size;
        *ret_text = TAKE_PTR(text);
        return 0;
}

/* What was unpacked or prepared once is not made again where any node has it: the others get it from there. Returns 0
 * with the plan of it; 1 if nobody has it. */
static int find_derived(struct run *run, struct plan **ret_plan, struct why *why) {
        _cleanup_(freep) uint8_t *all = NULL;
        _cleanup_(freep) char *text = NULL;
        uint8_t fits = stamp_fits(run);
        size_t n_bytes = 0;
        uint32_t holder = 0;
        int r;

        if (fits && read_kept_plan(run, &text, &n_bytes) < 0)
                fits = 0;
        all = run_gather(run, &fits, 1);
        while (holder < run->n_nodes && !all[holder])
                holder++;
        if (holder == run->n_nodes)
                return 1;
        if (run->node != holder) {
                free(text);
                text = NULL;
        }
        share_text(run, holder, &text, &n_bytes);
        r = plan_parse(text, n_bytes, "the kept manifest", NULL, false, ret_plan, why);
        return agree(run, r, why);
}

/* ---- making it ---- */

/* What `prepare` and `pack` ask for. */
static int prepare_version(struct run *run, struct version *version, struct why *why) {
        const struct dataset_setting *dataset = run->dataset;
        struct steps steps;
        int r = steps_parse(dataset->prepare, &steps, why);

        if (r < 0)
                return r;
        if (!steps.converts && !steps.command)
                return dataset->pack || dataset->prepare[0] ? version_prepare(run, version, why) : 0;
        if (dataset->pack)
                return why_set(why, -EINVAL,
                               "pack = yes packs pictures; what prepare = \"%s\" makes has its shards: leave pack out",
                               dataset->prepare);
        return version_convert(run, version, &steps, why);
}

static int make_from_source(struct run *run, struct plan **plan, struct version *version, struct why *why) {
        bool is_unpacked = plan_has_archives(*plan);
        int r = version_open(run, *plan, version, why);

        *plan = NULL; /* taken */
        if (r < 0 || run->options->dry_run)
                return r;
        r = is_unpacked ? version_unpack(run, version, why) : version_complete(run, version, true, NULL, NULL, why);
        return r < 0 ? r : prepare_version(run, version, why);
}

/* Brings all nodes to one whole version: what was made before, or made anew. */
static int run_make(struct run *run, struct plan **plan, struct version *version, struct why *why) {
        struct plan *kept = NULL;
        int r;

        if (!is_derived(run, *plan) || run->options->dry_run)
                return make_from_source(run, plan, version, why);
        r = find_derived(run, &kept, why);
        if (r < 0)
                return r;
        if (r == 0) {
                snprintf(run->next.source_version, sizeof(run->next.source_version), "%s", run->stamp.source_version);
                r = version_open(run, kept, version, why);
                if (r == 0)
                        r = version_complete(run, version, false, NULL, NULL, why);
                if (r == 0 || r == -ECANCELED)
                        return r;
                run_say(run, "warning", why->text);
                run_say(run, "info", "no node has all of it any longer: it is made again from the origin");
                version_fini(version);
        }
        return make_from_source(run, plan, version, why);
}

/* What would be moved. */
static int show_plan(struct run *run, struct version *version, struct why *why) {
        _cleanup_(freep) uint64_t *all = NULL;
        uint64_t missing = version->tree ? tree_n_missing_bytes(version->tree) : 0, most = 0;
        char text[DLP_TEXT_MAX];
        int r;

        r = version->tree ? tree_check_space(version->tree, why) : 0;
        r = agree(run, r, why);
        if (r == 0)
                all = run_gather(run, &missing, sizeof(missing));
        for (uint32_t node = 0; r == 0 && node < run->n_nodes; node++) {
                most = all[node] > most ? all[node] : most;
                snprintf(text, sizeof(text), "%s lacks %llu of %llu bytes", cluster_name(run->cluster, node),
                         (unsigned long long)all[node], (unsigned long long)plan_n_bytes(version->plan));
                if (run->node == 0)
                        run_say(run, "info", text);
        }
        snprintf(text, sizeof(text), "%llu files, %llu bytes; a node lacks %llu at most; manifest %.12s",
                 (unsigned long long)plan_n_files(version->plan), (unsigned long long)plan_n_bytes(version->plan),
                 (unsigned long long)most, plan_digest(version->plan));
        if (r == 0)
                run_end_report(run, "planned", text);
        return r;
}

static int run_publish(struct run *run, void *argument, struct why *why) {
        struct version *version = argument;

        return tree_publish(version->tree, &run->next, why);
}

/* What a node did in this run. */
struct done {
        uint64_t n_from_origin;
        uint64_t has_changed;
};

/* What all nodes did together. */
static struct done run_sum_up(struct run *run, const struct version *version) {
        _cleanup_(freep) struct done *all = NULL;
        struct done sum = { 0 };
        struct done mine = {
                .n_from_origin = atomic_load(&run->counts.n_bytes_origin),
                .has_changed = strcmp(run->stamp.manifest, plan_digest(version->plan)) != 0 || !stamp_fits(run) ||
                               strcmp(run->stamp.format, run->next.format) != 0 || access(run->place.path, F_OK) < 0 ||
                               atomic_load(&run->counts.n_bytes_done) > 0 || atomic_load(&run->counts.n_errors) > 0,
        };

        all = run_gather(run, &mine, sizeof(mine));
        for (uint32_t node = 0; node < run->n_nodes; node++) {
                sum.n_from_origin += all[node].n_from_origin;
                sum.has_changed |= all[node].has_changed;
        }
        return sum;
}

/* Every node has verified what it has: now, and not before, it may be seen. */
static int make_visible(struct run *run, struct version *version, struct why *why) {
        int r = version_index(run, version, why);

        if (r < 0)
                return r;
        run_phase(run, "publishing");
        run->next.n_nodes = run->n_nodes;
        snprintf(run->next.source, sizeof(run->next.source), "%s", run->source_digest);
        r = run->is_writer ? run_aside(run, run_publish, version, why) : 0;
        return agree(run, r, why);
}
static int run_finish(struct run *run, struct version *version, struct why *why) {
        struct done done;
        char text[DLP_TEXT_MAX];
        struct steps steps;
        int r = steps_parse(run->dataset->prepare, &steps, why);
        bool is_packed = run->dataset->pack || (run->dataset->prepare[0] && !steps.converts && !steps.command);

        if (r < 0)
                return r;
        snprintf(run->next.format, sizeof(run->next.format), "%s",
                 is_packed ? format_packed.name : run->dataset->format);
        done = run_sum_up(run, version);
        run_hear_all(run);
        if (done.has_changed) /* else nothing changes for those who are being served */
                r = make_visible(run, version, why);
        if (r < 0)
                return r;
        snprintf(text, sizeof(text), "%llu files, %llu bytes on %u node%s; %llu bytes came from the origin",
                 (unsigned long long)plan_n_files(version->plan), (unsigned long long)plan_n_bytes(version->plan),
                 run->n_nodes, run->n_nodes > 1 ? "s" : "", (unsigned long long)done.n_from_origin);
        run_end_report(run, done.has_changed ? "staged" : "up-to-date", text);
        return 0;
}

static int stage(struct run *run, struct why *why) {
        struct version version = { 0 };
        struct plan *plan = NULL;
        int r = stage_survey(run, &plan, why);

        snprintf(run->next.dataset, sizeof(run->next.dataset), "%s", run->dataset->name);
        snprintf(run->next.prepare, sizeof(run->next.prepare), "%s%s", run->dataset->pack ? "pack " : "",
                 run->dataset->prepare);
        if (r == 0)
                r = find_place(run, why);
        if (r == 0)
                r = run_make(run, &plan, &version, why);
        if (r == 0)
                r = run->options->dry_run ? show_plan(run, &version, why) : run_finish(run, &version, why);
        version_fini(&version);
        plan_free(plan);
        return r;
}

/* ---- begin and end ---- */

static int make_http(struct run *run, const struct dataset_setting *dataset, struct why *why) {
        char files_below[PATH_MAX];
        struct http_options options = {
                .files_below = files_below,
                .endpoint = dataset->endpoint[0] ? dataset->endpoint : NULL,
                .region = dataset->region[0] ? dataset->region : NULL,
                .addressing = dataset->addressing,
                .origin = strncasecmp(dataset->origin, "file:", 5) == 0 ? NULL : dataset->origin,
                .credentials = dataset->credentials[0] ? dataset->credentials : NULL,
                .of_user = true,
                .ca_file = dataset->ca_file[0] ? dataset->ca_file : NULL,
                .stall_s = (uint32_t)((dataset->stall_timeout + 1) / 2),
        };

        local_file_reach(dataset->origin, files_below);
        return http_new(&options, &run->http, why);
}

/* Waiting for others is the time to say that we are there. */
static void on_idle(void *userdata) {
        struct run *run = userdata;
        struct why why;

        if (run->cluster && run->report && !run->is_over)
                run_look(run, &why);
}

static int run_begin(struct run *run, struct why *why) {
        struct cluster_options options = { .stall_s = (uint32_t)run->dataset->stall_timeout,
                                           .idle = on_idle,
                                           .userdata = run };
        struct place place;
        bool has_place;
        int r = cluster_join(&options, &run->cluster, why);

        if (r < 0)
                return r;
        run->node = cluster_node(run->cluster);
        run->n_nodes = cluster_n_nodes(run->cluster);
        run->news = calloc(run->n_nodes, sizeof(*run->news));
        run->heard = calloc(run->n_nodes, sizeof(*run->heard));
        if (!run->news || !run->heard)
                return why_errno(why, -ENOMEM, "%u nodes", run->n_nodes);
        has_place = run->node == 0 && !run->options->dry_run && place_init(&place, run->dataset->path, why) == 0;
        r = report_new(run->options->style, run->dataset->name, has_place ? &place : NULL, run->node == 0,
                       &run->report);
        return r < 0 ? why_errno(why, r, "the report") : 0;
}

static void run_end(struct run *run) {
        run->is_over = true;
        cluster_leave(run->cluster); /* waits for the others, and is idle meanwhile */
        http_free(run->http);
        free(run->news);
        free(run->heard);
        if (run->lock_fd >= 0)
                close(run->lock_fd);
        pthread_mutex_destroy(&run->report_lock);
}

int run_stage(const struct stage_options *options, const struct dataset_setting *dataset) {
        struct run run = { .options = options, .dataset = dataset, .cancel = &is_cancelled, .lock_fd = -1 };
        struct why why;
        int r;

        if (dataset->allow[0])
                umask(0077); /* whom `allow` keeps out of the dataset reads nothing of what is staged of it */
        run.main_thread = pthread_self();
        pthread_mutex_init(&run.report_lock, NULL);
        r = run_begin(&run, &why);
        catch_signals(); /* after MPI has set its own handlers */
        if (r < 0) {
                fprintf(stderr, "dataloaderd-stage: %s\n", why.text);
                if (run.cluster && run.n_nodes > 1)
                        cluster_abort(run.cluster, run_exit_code_of(r));
                run_end(&run);
                return run_exit_code_of(r);
        }
        r = agree(&run, make_http(&run, dataset, &why), &why);
        if (r == 0)
                r = stage(&run, &why);
        if (r < 0)
                run_end_report(&run, "failed", why.text);

        run_end(&run);
        return run_exit_code_of(r);
}
