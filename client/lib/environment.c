#include "client/lib/environment.h"

/* Variables as their launchers document them; which one wins is the sequence of the tables. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/cleanup.h"

static const struct {
        const char *rank;
        const char *world;
} LAUNCHERS[] = {
        { "RANK", "WORLD_SIZE" }, /* torchrun, and what people set by hand */
        { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
        { "PMI_RANK", "PMI_SIZE" },
        { "SLURM_PROCID", "SLURM_NTASKS" },
};

/* Empty counts as not set: that is how shells clear a variable. */
static const char *variable(const char *name) {
        const char *value = getenv(name);

        return value && *value ? value : NULL;
}

static int parse_number(const char *name, const char *text, struct dli_reason *reason, int *ret_number) {
        char *end;
        long number;

        errno = 0;
        number = strtol(text, &end, 10);
        if (errno != 0 || *end != '\0' || text[0] < '0' || text[0] > '9' || number > INT_MAX)
                return dli_reason_set(reason, -EINVAL,
                                      "the environment's %s is \"%s\": must be a whole number, or unset it", name,
                                      text);
        *ret_number = (int)number;
        return 0;
}

int dli_environment_rank(int rank, int world, struct dli_reason *reason, int *ret_rank, int *ret_world) {
        int found_rank = 0, found_world = 1, r;

        for (size_t i = 0; i < sizeof(LAUNCHERS) / sizeof(LAUNCHERS[0]) && (rank < 0 || world < 0); i++) {
                const char *rank_text = variable(LAUNCHERS[i].rank), *world_text = variable(LAUNCHERS[i].world);

                if (!rank_text && !world_text)
                        continue;
                /* Slurm sets the number of tasks for a whole allocation, also where no task runs. */
                if (!rank_text && strcmp(LAUNCHERS[i].rank, "SLURM_PROCID") == 0)
                        continue;
                if ((!rank_text && rank < 0) || (!world_text && world < 0))
                        return dli_reason_set(
                                reason, -EINVAL,
                                "the environment has %s but no %s: set both, or the options rank and world_size",
                                rank_text ? LAUNCHERS[i].rank : LAUNCHERS[i].world,
                                rank_text ? LAUNCHERS[i].world : LAUNCHERS[i].rank);
                if (rank < 0) {
                        r = parse_number(LAUNCHERS[i].rank, rank_text, reason, &found_rank);
                        if (r < 0)
                                return r;
                }
                if (world < 0) {
                        r = parse_number(LAUNCHERS[i].world, world_text, reason, &found_world);
                        if (r < 0)
                                return r;
                }
                break;
        }
        *ret_rank = rank < 0 ? found_rank : rank;
        *ret_world = world < 0 ? found_world : world;
        return 0;
}

/* ---- the run's name ------------------------------------------------------------------------------------------ */

/* When this process began, in clock ticks since boot: a pid alone comes back. 0 if /proc cannot be read. */
static unsigned long long start_time(void) {
        _cleanup_(closep) int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
        unsigned long long ticks = 0;
        const char *field;
        char text[1024];
        ssize_t n;

        if (fd < 0)
                return 0;
        n = read(fd, text, sizeof(text) - 1);
        if (n <= 0)
                return 0;
        text[n] = '\0';
        field = strrchr(text, ')'); /* the program's name may hold blanks; field 3 follows it */
        for (int i = 2; field && i < 22; i++) {
                field = strchr(field, ' ');
                if (field)
                        field++;
        }
        return field && sscanf(field, "%llu", &ticks) == 1 ? ticks : 0;
}

/* The run as its launcher calls it; returns the length that the whole name has, 0 if there is none. */
static int run_name(char *name, size_t capacity) {
        const char *id = variable("TORCHELASTIC_RUN_ID");
        const char *address = variable("MASTER_ADDR"), *port = variable("MASTER_PORT");
        const char *step = variable("SLURM_STEP_ID"), *restart = variable("TORCHELASTIC_RESTART_COUNT");

        /* torchrun says "none" unless told otherwise: two strangers' runs must not meet under it. Ranks that it starts
         * again are another generation: they must not meet those that are still being torn down. */
        if (!restart || strcmp(restart, "0") == 0)
                restart = NULL;
        if (id && strcmp(id, "none") != 0)
                return snprintf(name, capacity, "%s%s%s", id, restart ? "/" : "", restart ? restart : "");
        if (!id && (id = variable("SLURM_JOB_ID")))
                return snprintf(name, capacity, "slurm-%s%s%s", id, step ? "." : "", step ? step : "");
        if (!id && ((id = variable("OMPI_MCA_ess_base_jobid")) || (id = variable("PMIX_NAMESPACE"))))
                return snprintf(name, capacity, "mpi-%s", id);
        if (address && port)
                return snprintf(name, capacity, "%s:%s%s%s", address, port, restart ? "/" : "", restart ? restart : "");
        name[0] = '\0';
        return 0;
}

int dli_environment_job(uint32_t world, uint64_t number, struct dli_reason *reason, char *ret_name) {
        char run[1024], process[64] = "", whole[DLP_NAME_MAX];
        int n_run = run_name(run, sizeof(run)), n;

        if (n_run == 0 && world > 1)
                return dli_reason_set(
                        reason, -EINVAL,
                        "job: this run of %u ranks has no name in the environment "
                        "(TORCHELASTIC_RUN_ID, SLURM_JOB_ID, MASTER_ADDR and MASTER_PORT): set the option job",
                        world);
        /* A single rank has nobody to find, but others of its kind to avoid: a sweep starts many in one allocation. */
        if (world <= 1)
                snprintf(process, sizeof(process), "%spid-%ld@%llu", n_run > 0 ? "/" : "", (long)getpid(),
                         start_time());

        n = snprintf(whole, sizeof(whole), "%s%s.%llu", run, process, (unsigned long long)number);
        if (n_run >= (int)sizeof(run) || n >= (int)sizeof(whole))
                return dli_reason_set(
                        reason, -EINVAL,
                        "job: the run's name from the environment is too long (%d bytes, %u are allowed): "
                        "set the option job",
                        n, DLP_NAME_MAX - 1);
        memcpy(ret_name, whole, sizeof(whole));
        return 0;
}
