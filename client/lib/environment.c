#include "client/lib/environment.h"

/* Variables as the launchers document them. The order of the tables says which one wins. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base/cleanup.h"

#define NAMESPACE_OF_MACHINE 0xeffffffcu /* of its pids: the kernel's PROC_PID_INIT_INO */

/* Slurm sets the variables of the job in batch scripts and shells of an allocation too. There one process runs, not
 * SLURM_NTASKS of them. Only the step's variables tell how many tasks run together with this one. */
static const struct launcher {
        const char *rank;
        const char *world;
        const char *allocation; /* how many tasks could run; NULL: `world` is reliable */
} LAUNCHERS[] = {
        { "RANK", "WORLD_SIZE", NULL }, /* torchrun, and variables that people set by hand */
        { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL },
        { "PMI_RANK", "PMI_SIZE", NULL },
        { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS" },
};

/* An empty variable counts as not set: shells clear a variable that way. */
static const char *variable(const char *name) {
        const char *value = getenv(name);

        return value && *value ? value : NULL;
}

static int environment_parse_number(const char *name, const char *text, struct why *reason, int *ret_number) {
        char *end;
        long number;

        errno = 0;
        number = strtol(text, &end, 10);
        if (errno != 0 || *end != '\0' || text[0] < '0' || text[0] > '9' || number > INT_MAX)
                return why_set(reason, -EINVAL, "the environment's %s is \"%s\": must be a whole number, or unset it",
                               name, text);
        *ret_number = (int)number;
        return 0;
}

/* Slurm without a step of several tasks: one process, which gets all samples. Returns 0, or -EINVAL if there is a task
 * number that only one of several tasks can have. */
static int alone_in_slurm(const struct launcher *launcher, const char *rank_text, struct why *reason,
                          struct dli_launch *launch) {
        const char *allocation = variable(launcher->allocation);
        int rank = 0, n_tasks = 1, r;

        if (!rank_text)
                return 0;
        r = environment_parse_number(launcher->rank, rank_text, reason, &rank);
        if (r == 0 && allocation)
                r = environment_parse_number(launcher->allocation, allocation, reason, &n_tasks);
        if (r < 0)
                return r;
        if (rank > 0)
                return why_set(reason, -EINVAL,
                               "the environment has %s=%d but no %s of several tasks: start the ranks with "
                               "srun, or set the options rank and world_size",
                               launcher->rank, rank, launcher->world);
        if (n_tasks > 1)
                why_set(&launch->remark, 0,
                        "Slurm's job has %s=%d, but this process is not in a step of as many tasks: it is taken as "
                        "rank 0 of 1 and gets all samples. Start the ranks with srun, or set rank and "
                        "world_size if this is what you want",
                        launcher->allocation, n_tasks);
        return 0;
}

/* A count or number that is only a hint: -1 if it is missing or invalid. */
static int hint(const char *name) {
        const char *text = variable(name);
        struct why reason;
        int number;

        return text && environment_parse_number(name, text, &reason, &number) == 0 ? number : -1;
}

/* Is the run's rendezvous address on this machine alone? Then all ranks are here. */
static bool meets_at_home(void) {
        const char *address = variable("MASTER_ADDR");

        return address &&
               (strcmp(address, "localhost") == 0 || strcmp(address, "::1") == 0 || strncmp(address, "127.", 4) == 0);
}

/* How many ranks this node has, and which of them, if the launcher says so. */
static void look_around(const struct launcher *launcher, struct dli_launch *launch) {
        static const char *const COUNTS[] = { "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS" };
        int local_rank = hint("LOCAL_RANK"), n = -1;

        for (size_t i = 0; i < sizeof(COUNTS) / sizeof(COUNTS[0]) && n < 0; i++)
                n = hint(COUNTS[i]);
        if (n < 0 && launcher->allocation && hint("SLURM_STEP_NUM_NODES") == 1)
                n = launch->world;
        if (n < 0 && !launcher->allocation && meets_at_home())
                n = launch->world;
        if (n < 1 || n > launch->world || n > (int)DLP_LOCAL_RANKS_MAX)
                return;
        launch->n_local = n;
        if (n == launch->world)
                launch->first_local = 0;
        else if (variable("LOCAL_WORLD_SIZE") && local_rank >= 0 && local_rank < n && local_rank <= launch->rank)
                launch->first_local = launch->rank - local_rank; /* torchrun numbers ranks node by node */
}

/* Did this launcher start us? Returns 1 with the rank that it gives, 0 if not, or -EINVAL. */
static int environment_look_at(const struct launcher *launcher, int rank, int world, struct why *reason,
                               struct dli_launch *launch) {
        const char *rank_text = variable(launcher->rank), *world_text = variable(launcher->world);
        int found_rank = 0, found_world = 1, r;

        if (!rank_text && !world_text)
                return 0;
        if (launcher->allocation) {
                r = world_text ? environment_parse_number(launcher->world, world_text, reason, &found_world) : 0;
                if (r < 0)
                        return r;
                if (found_world <= 1 || !rank_text)
                        return rank < 0 && world < 0 ? alone_in_slurm(launcher, rank_text, reason, launch) : 0;
        }
        if (launcher->allocation && rank < 0 && world >= 0 && world != found_world)
                return why_set(reason, -EINVAL,
                               "rank: not set, and the environment's %s is %d where world_size is %d: set both",
                               launcher->world, found_world, world);
        if ((!rank_text && rank < 0) || (!world_text && world < 0))
                return why_set(reason, -EINVAL,
                               "the environment has %s but no %s: set both, or the options rank and world_size",
                               rank_text ? launcher->rank : launcher->world,
                               rank_text ? launcher->world : launcher->rank);
        r = rank < 0 ? environment_parse_number(launcher->rank, rank_text, reason, &found_rank) : 0;
        if (r == 0 && world < 0)
                r = environment_parse_number(launcher->world, world_text, reason, &found_world);
        if (r < 0)
                return r;
        launch->launcher = launcher->rank;
        launch->rank = found_rank;
        launch->world = found_world;
        if (rank < 0 && world < 0)
                look_around(launcher, launch);
        return 1;
}

int dli_environment_rank(int rank, int world, struct why *reason, struct dli_launch *ret_launch) {
        struct dli_launch launch = { .rank = 0, .world = 1, .first_local = -1 };
        int r = 0;

        for (size_t i = 0; i < sizeof(LAUNCHERS) / sizeof(LAUNCHERS[0]) && (rank < 0 || world < 0) && r == 0; i++)
                r = environment_look_at(&LAUNCHERS[i], rank, world, reason, &launch);
        if (r < 0)
                return r;
        if (rank >= 0)
                launch.rank = rank;
        if (world >= 0)
                launch.world = world;
        *ret_launch = launch;
        return 0;
}

/* ---- the run's name ------------------------------------------------------------------------------------------ */

/* Start time of this process, in clock ticks since boot: a pid alone may be used again. 0 if /proc cannot be read. */
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
        field = strrchr(text, ')'); /* the program's name may contain blanks; field 3 follows it */
        for (int i = 2; field && i < 22; i++) {
                field = strchr(field, ' ');
                if (field)
                        field++;
        }
        return field && sscanf(field, "%llu", &ticks) == 1 ? ticks : 0;
}

/* Containers have numbers of processes of their own, and may have started theirs in the same moment. 0: the machine's
 * own numbers, or /proc cannot be read. */
static unsigned long long pid_namespace(void) {
        struct stat status;

        return stat("/proc/self/ns/pid", &status) == 0 && status.st_ino != NAMESPACE_OF_MACHINE ? status.st_ino : 0;
}

int dli_environment_run(char *name, size_t capacity) {
        const char *id = variable("TORCHELASTIC_RUN_ID");
        const char *address = variable("MASTER_ADDR"), *port = variable("MASTER_PORT");
        const char *step = variable("SLURM_STEP_ID"), *restart = variable("TORCHELASTIC_RESTART_COUNT");

        /* torchrun's default is "none": two unrelated runs must not meet under that name. Ranks that torchrun restarts
         * are another generation: they must not meet the old ones that are still being torn down. */
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

int dli_environment_job(uint32_t world, uint64_t number, struct why *reason, char *ret_name) {
        char run[1024], process[96] = "", whole[DLP_NAME_MAX];
        unsigned long long namespace = pid_namespace();
        int n_run = dli_environment_run(run, sizeof(run)), n;

        if (n_run == 0 && world > 1)
                return why_set(reason, -EINVAL,
                               "job: this run of %u ranks has no name in the environment "
                               "(TORCHELASTIC_RUN_ID, SLURM_JOB_ID, MASTER_ADDR and MASTER_PORT): set the option job",
                               world);
        /* A single rank has no other ranks to find. But other runs must not get its name: a sweep starts many in one
         * allocation. */
        if (world <= 1)
                snprintf(process, sizeof(process), namespace ? "%spid-%ld@%llu-%llu" : "%spid-%ld@%llu",
                         n_run > 0 ? "/" : "", (long)getpid(), start_time(), namespace);

        n = snprintf(whole, sizeof(whole), "%s%s.%llu", run, process, (unsigned long long)number);
        if (n_run >= (int)sizeof(run) || n >= (int)sizeof(whole))
                return why_set(reason, -EINVAL,
                               "job: the run's name from the environment is too long (%d bytes, %u are allowed): "
                               "set the option job",
                               n, DLP_NAME_MAX - 1);
        memcpy(ret_name, whole, sizeof(whole));
        return 0;
}
