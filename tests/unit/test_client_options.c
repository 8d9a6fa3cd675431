/* What the client makes of options and environment before it asks anybody. */

#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/include/dlclient.h"
#include "client/lib/environment.h"
#include "proto/frame.h"
#include "tests/support/stand_in.h"
#include "tests/support/temporary.h"

static const char *const VARIABLES[] = {
        "RANK",
        "WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "PMI_RANK",
        "PMI_SIZE",
        "SLURM_PROCID",
        "SLURM_NTASKS",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_STEP_NUM_NODES",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "MPI_LOCALNRANKS",
        "SLURM_JOB_ID",
        "SLURM_STEP_ID",
        "TORCHELASTIC_RUN_ID",
        "OMPI_MCA_ess_base_jobid",
        "PMIX_NAMESPACE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "DATALOADERD_SOCKET",
        "TORCHELASTIC_RESTART_COUNT",
};

static void clear_environment(void) {
        for (size_t i = 0; i < sizeof(VARIABLES) / sizeof(VARIABLES[0]); i++)
                unsetenv(VARIABLES[i]);
}

/* "RANK=3 WORLD_SIZE=4" */
static void set_environment(const char *assignments) {
        char copy[1024], *rest = copy, *word;

        clear_environment();
        snprintf(copy, sizeof(copy), "%s", assignments);
        while ((word = strsep(&rest, " ")) != NULL) {
                char *value = strchr(word, '=');

                if (!value)
                        continue;
                *value = '\0';
                setenv(word, value + 1, 1);
        }
}

static const struct {
        const char *environment;
        int rank, world; /* of the options */
        int expected_rank, expected_world;
} RANKS[] = {
        { "", -1, -1, 0, 1 },
        { "RANK=3 WORLD_SIZE=4", -1, -1, 3, 4 },
        { "RANK=3 WORLD_SIZE=4", 1, 2, 1, 2 },
        { "RANK=3 WORLD_SIZE=4", 1, -1, 1, 4 },
        { "RANK=3 WORLD_SIZE=4", -1, 8, 3, 8 },
        { "RANK=x WORLD_SIZE=y", 1, 2, 1, 2 }, /* not asked */
        { "WORLD_SIZE=4", 1, -1, 1, 4 },
        { "RANK= WORLD_SIZE=", -1, -1, 0, 1 },
        { "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=6", -1, -1, 5, 6 },
        { "PMI_RANK=7 PMI_SIZE=9", -1, -1, 7, 9 },
        { "SLURM_PROCID=1 SLURM_NTASKS=3 SLURM_STEP_NUM_TASKS=3", -1, -1, 1, 3 },
        { "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=3", -1, -1, 1, 3 },
        { "SLURM_PROCID=1 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=3", -1, -1, 1, 3 }, /* srun -n3 in a job of 8 */
        { "SLURM_PROCID=1 SLURM_NTASKS=3 SLURM_STEP_NUM_TASKS=3", -1, 3, 1, 3 },
        { "SLURM_PROCID=1 SLURM_NTASKS=3 SLURM_STEP_NUM_TASKS=3", 2, -1, 2, 3 },
        { "SLURM_PROCID=0 SLURM_NTASKS=8", 5, 6, 5, 6 },                          /* not asked */
        { "SLURM_NTASKS=3", -1, -1, 0, 1 },                                       /* an allocation, but no task of it */
        { "SLURM_PROCID=0 SLURM_NTASKS=8", -1, -1, 0, 1 },                        /* a batch script */
        { "SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=1", -1, -1, 0, 1 }, /* srun --pty bash, in a job of 8 */
        { "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_NUM_TASKS=1", -1, -1, 0, 1 },
        { "RANK=3 WORLD_SIZE=4 SLURM_PROCID=1 SLURM_NTASKS=3 SLURM_STEP_NUM_TASKS=3", -1, -1, 3, 4 },
        { "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=6 PMI_RANK=7 PMI_SIZE=9", -1, -1, 5, 6 },
};

START_TEST(rank_and_world_come_from_the_launcher) {
        struct dli_launch launch;
        struct why reason;

        set_environment(RANKS[_i].environment);
        ck_assert_int_eq(dli_environment_rank(RANKS[_i].rank, RANKS[_i].world, &reason, &launch), 0);
        ck_assert_int_eq(launch.rank, RANKS[_i].expected_rank);
        ck_assert_int_eq(launch.world, RANKS[_i].expected_world);
}
END_TEST

static const struct {
        const char *environment;
        int rank, world;  /* of the options */
        const char *part; /* of the remark; NULL: there is none */
} ALONE_IN_SLURM[] = {
        { "SLURM_PROCID=0 SLURM_NTASKS=8", -1, -1, "SLURM_NTASKS=8" },
        { "SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=1", -1, -1, "rank 0 of 1" },
        { "SLURM_PROCID=0 SLURM_NTASKS=8", 0, 1, NULL }, /* said so */
        { "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_NUM_TASKS=1", -1, -1, NULL },
        { "SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=8", -1, -1, NULL },
        { "SLURM_NTASKS=8", -1, -1, NULL },
        { "RANK=0 WORLD_SIZE=1 SLURM_PROCID=0 SLURM_NTASKS=8", -1, -1, NULL },
};

START_TEST(one_process_of_an_allocation_is_told_that_it_is_alone) {
        struct dli_launch launch;
        struct why reason;

        set_environment(ALONE_IN_SLURM[_i].environment);
        ck_assert_int_eq(dli_environment_rank(ALONE_IN_SLURM[_i].rank, ALONE_IN_SLURM[_i].world, &reason, &launch), 0);
        if (ALONE_IN_SLURM[_i].part)
                ck_assert_msg(strstr(launch.remark.text, ALONE_IN_SLURM[_i].part), "%s", launch.remark.text);
        else
                ck_assert_str_eq(launch.remark.text, "");
}
END_TEST

static const struct {
        const char *environment;
        const char *part; /* of the message */
} BAD_RANKS[] = {
        { "RANK=x WORLD_SIZE=4", "RANK is \"x\"" },
        { "RANK=3 WORLD_SIZE=4four", "WORLD_SIZE is \"4four\"" },
        { "RANK=-1 WORLD_SIZE=4", "RANK is \"-1\"" },
        { "RANK=+1 WORLD_SIZE=4", "RANK is \"+1\"" },
        { "RANK=0 WORLD_SIZE=99999999999", "WORLD_SIZE is \"99999999999\"" },
        { "RANK=0 WORLD_SIZE=99999999999999999999999", "WORLD_SIZE" },
        { "RANK=3", "RANK but no WORLD_SIZE" },
        { "WORLD_SIZE=3", "WORLD_SIZE but no RANK" },
        { "SLURM_PROCID=3", "SLURM_PROCID=3 but no SLURM_STEP_NUM_TASKS" },
        { "SLURM_PROCID=3 SLURM_NTASKS=8", "SLURM_PROCID=3 but no SLURM_STEP_NUM_TASKS" },
        { "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=many", "SLURM_STEP_NUM_TASKS is \"many\"" },
        { "SLURM_PROCID=0 SLURM_NTASKS=many", "SLURM_NTASKS is \"many\"" },
};

START_TEST(garbage_in_the_environment_is_named) {
        struct dli_launch launch = { .rank = -9 };
        struct why reason;

        set_environment(BAD_RANKS[_i].environment);
        ck_assert_int_eq(dli_environment_rank(-1, -1, &reason, &launch), -EINVAL);
        ck_assert_msg(strstr(reason.text, BAD_RANKS[_i].part) != NULL, "\"%s\" is not in \"%s\"", BAD_RANKS[_i].part,
                      reason.text);
        ck_assert_int_eq(launch.rank, -9);
}
END_TEST

static const struct {
        const char *environment;
        int n_local, first_local;
} AROUND[] = {
        { "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4", 4, 4 },
        { "RANK=5 WORLD_SIZE=8 LOCAL_WORLD_SIZE=8", 8, 0 },
        { "RANK=5 WORLD_SIZE=8 LOCAL_WORLD_SIZE=4", 4, -1 },
        { "RANK=5 WORLD_SIZE=8", 0, -1 },
        { "RANK=5 WORLD_SIZE=8 MASTER_ADDR=10.0.0.1", 0, -1 },
        { "RANK=5 WORLD_SIZE=8 MASTER_ADDR=127.0.0.1", 8, 0 },
        { "RANK=5 WORLD_SIZE=8 LOCAL_RANK=x LOCAL_WORLD_SIZE=4", 4, -1 }, /* a hint that makes no sense is none */
        { "RANK=5 WORLD_SIZE=8 LOCAL_WORLD_SIZE=9", 0, -1 },
        { "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=6 OMPI_COMM_WORLD_LOCAL_SIZE=2", 2, -1 },
        { "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=2", 2, 0 },
        { "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NUM_NODES=1", 3, 0 },
        { "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NUM_NODES=2", 0, -1 },
        { "", 0, -1 },
};

START_TEST(how_many_ranks_the_node_has_is_known_if_the_launcher_says_so) {
        struct dli_launch launch;
        struct why reason;

        set_environment(AROUND[_i].environment);
        ck_assert_int_eq(dli_environment_rank(-1, -1, &reason, &launch), 0);
        ck_assert_int_eq(launch.n_local, AROUND[_i].n_local);
        ck_assert_int_eq(launch.first_local, AROUND[_i].first_local);
        /* Who says which rank he is may mean it otherwise. */
        ck_assert_int_eq(dli_environment_rank(launch.rank, launch.world, &reason, &launch), 0);
        ck_assert_int_eq(launch.n_local, 0);
}
END_TEST

START_TEST(a_step_of_another_size_than_the_world_gives_no_rank) {
        struct dli_launch launch;
        struct why reason;

        set_environment("SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4");
        ck_assert_int_eq(dli_environment_rank(-1, 8, &reason, &launch), -EINVAL);
        ck_assert_msg(strstr(reason.text, "SLURM_STEP_NUM_TASKS is 4 where world_size is 8"), "%s", reason.text);
}
END_TEST

static const struct {
        const char *environment;
        const char *expected;
} JOBS[] = {
        { "TORCHELASTIC_RUN_ID=run7 SLURM_JOB_ID=8 MASTER_ADDR=a MASTER_PORT=1", "run7.2" },
        { "TORCHELASTIC_RUN_ID=none MASTER_ADDR=10.0.0.1 MASTER_PORT=29500", "10.0.0.1:29500.2" },
        { "TORCHELASTIC_RUN_ID=run7 TORCHELASTIC_RESTART_COUNT=0", "run7.2" },
        { "TORCHELASTIC_RUN_ID=run7 TORCHELASTIC_RESTART_COUNT=3", "run7/3.2" }, /* not the generation before */
        { "TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=1 MASTER_ADDR=host MASTER_PORT=1", "host:1/1.2" },
        { "SLURM_JOB_ID=8", "slurm-8.2" },
        { "SLURM_JOB_ID=8 SLURM_STEP_ID=0", "slurm-8.0.2" },
        { "OMPI_MCA_ess_base_jobid=1234", "mpi-1234.2" },
        { "PMIX_NAMESPACE=space", "mpi-space.2" },
        { "MASTER_ADDR=host MASTER_PORT=1", "host:1.2" },
};

START_TEST(a_job_is_called_as_its_run) {
        char name[DLP_NAME_MAX], alone[DLP_NAME_MAX];
        struct why reason;

        set_environment(JOBS[_i].environment);
        ck_assert_int_eq(dli_environment_job(4, 2, &reason, name), 0);
        ck_assert_str_eq(name, JOBS[_i].expected);
        /* Processes of one rank never meet, whoever started them. */
        ck_assert_int_eq(dli_environment_job(1, 2, &reason, alone), 0);
        ck_assert_ptr_nonnull(strstr(alone, "pid-"));
}
END_TEST

START_TEST(ranks_without_a_name_are_refused) {
        char name[DLP_NAME_MAX] = "untouched", expected[64];
        struct why reason;

        set_environment("");
        ck_assert_int_eq(dli_environment_job(2, 0, &reason, name), -EINVAL);
        ck_assert_ptr_nonnull(strstr(reason.text, "set the option job"));
        ck_assert_str_eq(name, "untouched");
        set_environment("TORCHELASTIC_RUN_ID=none");
        ck_assert_int_eq(dli_environment_job(2, 0, &reason, name), -EINVAL);
        set_environment("");
        ck_assert_int_eq(dli_environment_job(1, 5, &reason, name), 0);
        snprintf(expected, sizeof(expected), "pid-%ld@", (long)getpid());
        ck_assert_int_eq(strncmp(name, expected, strlen(expected)), 0);
        ck_assert_str_eq(name + strlen(name) - 2, ".5");
        ck_assert_ptr_null(strstr(name, "@0")); /* the start is known */
}
END_TEST

/* In the first process of a pid namespace of its own. */
static int check_name_in_a_namespace(void) {
        char name[DLP_NAME_MAX], expected[64];
        struct stat status;
        struct why reason;

        if (stat("/proc/self/ns/pid", &status) < 0 || dli_environment_job(1, 5, &reason, name) < 0)
                return 1;
        snprintf(expected, sizeof(expected), "-%llu.5", (unsigned long long)status.st_ino);
        return getpid() == 1 && strncmp(name, "pid-1@", 6) == 0 && strstr(name, expected) ? 0 : 1;
}

/* Both may have been started in the same moment. The kernel numbers the namespaces that there are. */
START_TEST(the_first_processes_of_two_containers_have_two_names) {
        int status;
        pid_t pid;

        set_environment("");
        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
                if (unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
                        _exit(77);
                pid = fork();
                if (pid == 0)
                        _exit(check_name_in_a_namespace());
                _exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
                printf("not run: this user may not make a pid namespace\n");
        else
                ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(a_run_name_of_any_length_is_no_trouble) {
        char name[DLP_NAME_MAX], value[5000];
        struct why reason;

        clear_environment();
        for (size_t n = 100; n < sizeof(value); n += n < 140 ? 1 : 400) {
                int r;

                memset(value, 'x', n);
                value[n] = '\0';
                setenv("TORCHELASTIC_RUN_ID", value, 1);
                r = dli_environment_job(2, 7, &reason, name);
                if (n + 2 < DLP_NAME_MAX) {
                        ck_assert_int_eq(r, 0);
                        ck_assert_uint_eq(strlen(name), n + 2);
                } else {
                        ck_assert_int_eq(r, -EINVAL);
                }
        }
        clear_environment();
}
END_TEST

/* ---- options ------------------------------------------------------------------------------------------------- */

static void check_refused(const struct dlc_options *options, int error, const char *part) {
        struct dlc_loader *loader = NULL;
        int r = dlc_open(options, &loader);

        ck_assert_msg(r == error, "%d (%s), not %d", r, dlc_last_error(), error);
        ck_assert_ptr_null(loader);
        ck_assert_msg(strstr(dlc_last_error(), part) != NULL, "\"%s\" is not in \"%s\"", part, dlc_last_error());
}

static struct dlc_options good_options(void) {
        struct dlc_options options = DLC_OPTIONS_INIT;

        options.dataset = "photos";
        options.socket = "/nonexistent/socket";
        return options;
}

START_TEST(each_option_out_of_range_is_named_with_what_is_allowed) {
        char long_text[DLP_DATASET_MAX + 1];
        struct dlc_options options;

        clear_environment();
        memset(long_text, 'x', sizeof(long_text) - 1);
        long_text[sizeof(long_text) - 1] = '\0';
#define REFUSED(field, value, part)                                                                                    \
        options = good_options();                                                                                      \
        options.field = value;                                                                                         \
        check_refused(&options, -EINVAL, part)
        REFUSED(dataset, NULL, "dataset: not set");
        REFUSED(dataset, "", "dataset: not set");
        REFUSED(dataset, long_text, "dataset: too long, at most 8191");
        REFUSED(job, long_text, "job: too long");
        REFUSED(job, "", "job: empty");
        REFUSED(pipeline, long_text, "pipeline: too long, at most 4095");
        REFUSED(partition, long_text, "partition: too long");
        REFUSED(batch_size, 0, "batch_size: 0; 1 to 65536");
        REFUSED(batch_size, -5, "batch_size: -5; 1 to 65536");
        REFUSED(batch_size, 65537, "batch_size: 65537");
        REFUSED(world_size, 0, "world_size: 0; 1 to 1048576");
        REFUSED(world_size, 1000000000, "world_size: 1000000000");
        REFUSED(world_size, -2, "world_size: -2");
        REFUSED(rank, -2, "rank: -2");
        REFUSED(rank, 1, "rank: 1; 0 to 0 are allowed in a world of 1");
        REFUSED(n_slots, 1, "n_slots: 1; 2 to 64");
        REFUSED(n_slots, 65, "n_slots: 65");
        REFUSED(n_slots, -1, "n_slots: -1");
        REFUSED(first_epoch, 1ull << 32, "first_epoch: 4294967296");
        REFUSED(partition, "odd", "partition: \"odd\" is not known; choose one of: pad drop exact");
        REFUSED(dealing, "cards", "dealing: \"cards\" is not known; choose one of: strided chunk batch");
        REFUSED(dealing, long_text, "dealing: too long");
        REFUSED(on_restart, "never", "on_restart: \"never\" is not known; choose one of: wait raise");
        REFUSED(on_restart, long_text, "on_restart: too long");
        REFUSED(near_device, "cuda:0", "near_device: \"cuda:0\" is not a PCI bus id, such as 0000:1b:00.0");
        REFUSED(near_device, "0000:1b:00.0/../x", "is not a PCI bus id");
        REFUSED(near_device, long_text, "near_device: too long");
        REFUSED(restart_timeout_ms, -2, "restart_timeout_ms: -2");
        REFUSED(max_errors, -0.5, "max_errors: -0.5");
        REFUSED(max_errors, 1.5, "max_errors: 1.5; a share below 1");
        REFUSED(max_errors, 0.0 / 0.0, "max_errors: ");
        REFUSED(max_errors, 1.0 / 0.0, "max_errors: inf");
        REFUSED(socket, "", "socket: the path must have 1 to 107 bytes");
        REFUSED(socket, long_text, "socket: the path");
}
END_TEST

START_TEST(options_of_other_versions_are_understood) {
        struct {
                struct dlc_options options;
                char more[16];
        } newer = { .options = good_options() };
        struct dlc_options older = good_options();

        clear_environment();
        newer.options.size = sizeof(newer);
        check_refused(&newer.options, -ECONNREFUSED, "/nonexistent/socket"); /* the tail is zero: fine */
        newer.more[3] = 1;
        check_refused(&newer.options, -EINVAL, "libdlclient");
        older.size = offsetof(struct dlc_options, rank);
        older.rank = older.world_size = 77; /* not there for an older program */
        check_refused(&older, -ECONNREFUSED, "/nonexistent/socket");
        older.size = 0;
        check_refused(&older, -EINVAL, "DLC_OPTIONS_INIT");
        older.size = SIZE_MAX;
        check_refused(&older, -EINVAL, "DLC_OPTIONS_INIT");
}
END_TEST

/* ---- where the daemon is not --------------------------------------------------------------------------------- */

START_TEST(no_daemon_is_told_from_no_permission_and_another_program) {
        char folder[64], path[80];
        struct dlc_options options = good_options();
        struct sockaddr_un address;
        int listener;

        clear_environment();
        temporary_folder(folder, sizeof(folder));
        snprintf(path, sizeof(path), "%s/socket", folder);
        options.socket = path;
        check_refused(&options, -ECONNREFUSED, "there is no such socket");

        ck_assert_int_eq(dlp_socket_address(path, &address), 0);
        listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(listen(listener, 1), 0);
        check_refused(&options, -ECONNREFUSED, "another program's socket");
        close(listener);
        check_refused(&options, -ECONNREFUSED, path);

        unlink(path);
        listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
        close(listener);
        check_refused(&options, -ECONNREFUSED, "nobody listens");
        unlink(path);
        rmdir(folder);
}
END_TEST

START_TEST(the_socket_comes_from_the_environment) {
        struct dlc_options options = good_options();

        clear_environment();
        options.socket = NULL;
        setenv("DATALOADERD_SOCKET", "/nonexistent/elsewhere", 1);
        check_refused(&options, -ECONNREFUSED, "/nonexistent/elsewhere");
        clear_environment();
}
END_TEST

START_TEST(loaders_of_a_process_are_numbered_and_failures_do_not_count) {
        struct stand_in_manners manners = { .n_samples = 10 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = good_options(), failing = good_options();
        struct dlc_loader *loaders[2];
        unsigned first;

        set_environment("RANK=1 WORLD_SIZE=2 MASTER_ADDR=host MASTER_PORT=77");
        options.socket = stand_in_path(stand_in);
        ck_assert_int_eq(dlc_open(&options, &loaders[0]), 0);
        ck_assert_int_eq(sscanf(dlc_get_info(loaders[0])->job, "host:77.%u", &first), 1);
        check_refused(&failing, -ECONNREFUSED, "/nonexistent/socket");
        ck_assert_int_eq(dlc_open(&options, &loaders[1]), 0);
        ck_assert_uint_eq(strtoul(dlc_get_info(loaders[1])->job + 8, NULL, 10), first + 1);
        ck_assert_uint_eq(dlc_get_info(loaders[1])->rank, 1);
        ck_assert_uint_eq(dlc_get_info(loaders[1])->world_size, 2);
        dlc_close(loaders[0]);
        dlc_close(loaders[1]);
        stand_in_stop(stand_in);
        clear_environment();
}
END_TEST

/* ---- texts ----------------------------------------------------------------------------------------------------- */

START_TEST(what_a_pipeline_says_is_a_line_for_each_part_and_step) {
        static const struct {
                const char *text, *lines;
        } ROWS[] = {
                { "", "part\t0\n" },
                { "T.Resize([2, 3],) views(n = 2)", "part\t30\nstep\tResize\t2:3\nstep\tviews\tn=2\n" },
                { "a, b=c: json(x[\"(\t\"]); d;", "part\t21\ta\tb\nstep\tjson\tx[\"( \"]\npart\t24\nstep\td\n" },
                { "one two(3 ;x", "part\t12\nstep\tone\nstep\ttwo\t3\n" }, /* the mistake is for dlc_open() to tell */
        };
        char lines[128];

        for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
                size_t n = strlen(ROWS[i].lines);

                ck_assert_int_eq(dlc_pipeline_steps(ROWS[i].text, lines, sizeof(lines)), 0);
                ck_assert_str_eq(lines, ROWS[i].lines);
                ck_assert_int_eq(dlc_pipeline_steps(ROWS[i].text, lines, n + 1), 0);
                ck_assert_str_eq(lines, ROWS[i].lines);
                ck_assert_int_eq(dlc_pipeline_steps(ROWS[i].text, lines, n), -E2BIG);
        }
        ck_assert_int_eq(dlc_pipeline_steps("a", lines, 0), -EINVAL);
        ck_assert_int_eq(dlc_pipeline_steps(NULL, lines, sizeof(lines)), -EINVAL);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("client_options");
        TCase *environment = tcase_create("environment"), *options = tcase_create("options");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_loop_test(environment, rank_and_world_come_from_the_launcher, 0, sizeof(RANKS) / sizeof(RANKS[0]));
        tcase_add_loop_test(environment, one_process_of_an_allocation_is_told_that_it_is_alone, 0,
                            sizeof(ALONE_IN_SLURM) / sizeof(ALONE_IN_SLURM[0]));
        tcase_add_loop_test(environment, how_many_ranks_the_node_has_is_known_if_the_launcher_says_so, 0,
                            sizeof(AROUND) / sizeof(AROUND[0]));
        tcase_add_test(environment, a_step_of_another_size_than_the_world_gives_no_rank);
        tcase_add_loop_test(environment, garbage_in_the_environment_is_named, 0,
                            sizeof(BAD_RANKS) / sizeof(BAD_RANKS[0]));
        tcase_add_loop_test(environment, a_job_is_called_as_its_run, 0, sizeof(JOBS) / sizeof(JOBS[0]));
        tcase_add_test(environment, ranks_without_a_name_are_refused);
        tcase_add_test(environment, the_first_processes_of_two_containers_have_two_names);
        tcase_add_test(environment, a_run_name_of_any_length_is_no_trouble);
        suite_add_tcase(suite, environment);
        tcase_add_test(options, each_option_out_of_range_is_named_with_what_is_allowed);
        tcase_add_test(options, what_a_pipeline_says_is_a_line_for_each_part_and_step);
        tcase_add_test(options, options_of_other_versions_are_understood);
        tcase_add_test(options, no_daemon_is_told_from_no_permission_and_another_program);
        tcase_add_test(options, the_socket_comes_from_the_environment);
        tcase_add_test(options, loaders_of_a_process_are_numbered_and_failures_do_not_count);
        suite_add_tcase(suite, options);

        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
