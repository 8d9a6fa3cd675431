/* Which processes live and end together, by the control groups that batch systems and service managers make. */
#include <check.h>

#include "proto/job_group.h"

#define V1(path)                                                                                                       \
        "12:pids:/system.slice/slurmd.service\n5:memory:" path "\n1:name=systemd:/system.slice/slurmd.service\n0::/\n"
#define V2(path) "0::" path "\n"

#define SLURM "/system.slice/slurmstepd.scope"
#define PODS  "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"
#define USER  "/user.slice/user-1000.slice/"
#define HEX   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"

static const struct {
        const char *one, *other;
        int is_same;
} PAIRS[] = {
        { V2(SLURM "/job_7/step_0/user/task_0"), V2(SLURM "/job_7/step_0/user/task_1"), 1 },
        { V2(SLURM "/job_7/step_0/user/task_0"), V2(SLURM "/job_7/step_extern/user"), 1 },
        { V2(SLURM "/job_7/step_0"), V2(SLURM "/job_8/step_0"), 0 },
        { V2(SLURM "/job_7/step_0"), V2(SLURM "/job_70/step_0"), 0 },
        { V1("/slurm/uid_1000/job_7/step_0/task_0"), V1("/slurm/uid_1000/job_7/step_1/task_0"), 1 },
        { V1("/slurm/uid_1000/job_7/step_0/task_0"), V1("/slurm/uid_1000/job_8/step_0/task_0"), 0 },
        { V2(PODS "1.slice/cri-containerd-a.scope"), V2(PODS "1.slice/cri-containerd-b.scope"), 1 },
        { V2(PODS "1.slice/cri-containerd-a.scope"), V2(PODS "2.slice/cri-containerd-a.scope"), 0 },
        { V1("/kubepods/burstable/pod1/a"), V1("/kubepods/burstable/pod1/b"), 1 },
        { V1("/kubepods/burstable/pod1/a"), V1("/kubepods/burstable/pod2/a"), 0 },
        { V2("/../pod1/a"), V2("/../pod2/a"), 0 },
        { V2("/docker/1"), V2("/docker/2"), 0 },
        { V2("/system.slice/train-a.service"), V2("/system.slice/train-b.service"), 0 },
        { V2("/docker/" HEX "1/a"), V2("/docker/" HEX "1/job_1"), 1 },
        { V2("/docker/" HEX "1"), V2("/docker/" HEX "2"), 0 },
        { V2("/libpod-" HEX "1.scope/a"), V2("/libpod-" HEX "1.scope/user.slice/b.service"), 1 },
        { V2("/system.slice/a.service/kubepods/podx"), V2("/system.slice/a.service/kubepods/pody"), 1 },
        { V2("/system.slice/docker-1.scope/job_1"), V2("/system.slice/docker-1.scope/job_2/step_0"), 1 },
        { V2("/system.slice/docker-1.scope/job_1"), V2("/system.slice/docker-2.scope/job_1"), 0 },
        { V2("/system.slice/node7_slurmstepd.scope/job_1"), V2("/system.slice/node7_slurmstepd.scope/job_2"), 0 },
        { "1:name=systemd:/a\n0::/\n", "1:name=systemd:/b\n0::/\n", 0 },
        { "3:memory:/a\n1:name=systemd:/\n0::/\n", "3:memory:/b\n1:name=systemd:/\n0::/\n", 1 },
        { V2(USER "session-3.scope"), V2(USER "session-4.scope"), 1 },
        { V2(USER "session-3.scope"), V2(USER "user@1000.service/app.slice/vte-spawn-1.scope"), 1 },
        { V2(USER "session-3.scope"), V2("/"), 1 },
        { V2(USER "user@1000.service/app.slice/a.service"), V2(USER "user@1000.service/app.slice/a.service/x"), 1 },
        { V2(USER "user@1000.service/app.slice/a.service"), V2(USER "user@1000.service/app.slice/b.service"), 0 },
        { V2("/lxc.payload.a" USER "session-3.scope"), V2("/lxc.payload.a" USER "session-4.scope"), 1 },
        { V2("/lxc.payload.a" USER "session-3.scope"), V2("/lxc.payload.b" USER "session-3.scope"), 0 },
};

START_TEST(steps_and_containers_of_one_job_are_one_and_those_of_others_are_not) {
        uint64_t one = dlp_job_group_parse(PAIRS[_i].one), other = dlp_job_group_parse(PAIRS[_i].other);

        ck_assert_msg((one == other) == PAIRS[_i].is_same, "%s and %s", PAIRS[_i].one, PAIRS[_i].other);
}
END_TEST

static const char *const NONE[] = { "",          "\n",       "0::\n",      "0::/\n",  "0:/a\n",
                                    "::\n",      "0::/half", "1:cpu:/a\n", "garbage", V2(USER "session-3.scope"),
                                    "0::job_7\n" };

START_TEST(who_lives_in_nothing_that_ends_has_no_group) {
        ck_assert_msg(dlp_job_group_parse(NONE[_i]) == 0, "%s", NONE[_i]);
}
END_TEST

START_TEST(a_file_that_is_not_there_tells_of_no_group) {
        ck_assert_uint_eq(dlp_job_group("/nowhere/cgroup"), 0);
        ck_assert_uint_eq(dlp_job_group("/"), 0);
        dlp_job_group("/proc/self/cgroup");
}
END_TEST

int main(void) {
        Suite *suite = suite_create("job_group");
        TCase *group = tcase_create("job_group");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_loop_test(group, steps_and_containers_of_one_job_are_one_and_those_of_others_are_not, 0,
                            (int)(sizeof(PAIRS) / sizeof(PAIRS[0])));
        tcase_add_loop_test(group, who_lives_in_nothing_that_ends_has_no_group, 0,
                            (int)(sizeof(NONE) / sizeof(NONE[0])));
        tcase_add_test(group, a_file_that_is_not_there_tells_of_no_group);
        suite_add_tcase(suite, group);

        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
