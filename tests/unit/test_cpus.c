/* How many CPUs we may use: what the kernel's files say, in systemd's tree, in containers, and where nothing is said.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/machine/cpus.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- cpu.max ------------------------------------------------------------------------------------------------- */

static const struct {
        const char *text;
        uint64_t milli;
} MAXIMA[] = {
        { "max 100000\n", 0 },
        { "350000 100000\n", 3500 },
        { "100000 100000\n", 1000 },
        { "50000 200000\n", 250 },
        { "1000 1000000\n", 1 },
        { "1 1000000\n", 1 }, /* less than a thousandth is not none */
        { "6400000 100000", 64000 },
        { "", 0 },
        { "\n", 0 },
        { "350000", 0 },
        { "350000 \n", 0 },
        { "350000 0\n", 0 },
        { "350000 -1\n", 0 },
        { "-350000 100000\n", 0 },
        { "350000 100000 x\n", 0 },
        { "99999999999999999999999 100000\n", 0 },
        { "350000 99999999999999999999999\n", 0 },
};

START_TEST(a_quota_is_a_share_of_its_period_and_what_is_none_is_none) {
        ck_assert_uint_eq(cpus_parse_max(MAXIMA[_i].text), MAXIMA[_i].milli);
}
END_TEST

/* ---- which group, and where it is shown ---------------------------------------------------------------------- */

#define V1_GROUPS "12:cpu,cpuacct:/docker/4f\n11:memory:/docker/4f\n1:name=systemd:/docker/4f\n"

static const struct {
        const char *text, *path; /* NULL: none */
} GROUPS[] = {
        { "0::/system.slice/dataloaderd.service\n", "/system.slice/dataloaderd.service" },
        { V1_GROUPS "0::/docker/4f\n", "/docker/4f" },
        { "0::/\n", "/" },
        { "0::/a b\n", "/a b" },
        { V1_GROUPS, NULL },
        { "10::/wrong\n", NULL },
        { "", NULL },
};

START_TEST(our_group_is_the_line_of_version_2) {
        char path[128];

        ck_assert_int_eq(cpus_parse_cgroup(GROUPS[_i].text, path, sizeof(path)), GROUPS[_i].path != NULL);
        if (GROUPS[_i].path)
                ck_assert_str_eq(path, GROUPS[_i].path);
}
END_TEST

#define OTHER_MOUNTS                                                                                                   \
        "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"                                                    \
        "25 22 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:14 - proc proc rw\n"                                \
        "31 23 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"

static const struct {
        const char *text, *root, *point; /* NULL: none */
} MOUNTS[] = {
        { OTHER_MOUNTS "35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
                       "rw,nsdelegate,memory_recursiveprot\n",
          "/", "/sys/fs/cgroup" },
        { "35 24 0:30 /docker/4f /sys/fs/cgroup ro,relatime shared:9 master:2 - cgroup2 cgroup rw\n", "/docker/4f",
          "/sys/fs/cgroup" },
        { "41 31 0:38 / /mnt/a\\040b\\134c rw - cgroup2 cgroup2 rw\n", "/", "/mnt/a b\\c" },
        { OTHER_MOUNTS, NULL, NULL },
        { "35 24 0:30 / /x - cgroup2\n35 24 - cgroup2 \n- cgroup2 \n", NULL, NULL },
        { "35 - cgroup2 a b\n", NULL, NULL },
        { "", NULL, NULL },
};

START_TEST(the_tree_of_version_2_is_found_among_the_mounts) {
        char root[64], point[64];

        ck_assert_int_eq(cpus_parse_mounts(MOUNTS[_i].text, root, point, sizeof(root)), MOUNTS[_i].root != NULL);
        if (!MOUNTS[_i].root)
                return;
        ck_assert_str_eq(root, MOUNTS[_i].root);
        ck_assert_str_eq(point, MOUNTS[_i].point);
}
END_TEST

START_TEST(a_name_that_does_not_fit_is_none) {
        char path[8], point[8];

        ck_assert(!cpus_parse_cgroup("0::/system.slice\n", path, sizeof(path)));
        ck_assert(!cpus_parse_mounts("35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", path, point,
                                     sizeof(point)));
}
END_TEST

/* Texts that are cut anywhere: answers may be wrong, but come. */
START_TEST(cut_files_are_survived) {
        char text[512], root[64], point[64];

        for (size_t n = strlen(MOUNTS[0].text); n-- > 0;) {
                snprintf(text, sizeof(text), "%.*s", (int)n, MOUNTS[0].text);
                cpus_parse_mounts(text, root, point, sizeof(root));
                cpus_parse_cgroup(text, root, sizeof(root));
                cpus_parse_max(text);
        }
}
END_TEST

/* ---- all of it, in a tree of our own ------------------------------------------------------------------------- */

static const struct {
        const char *root, *path;           /* of the mount, and of our group */
        const char *above, *group, *below; /* cpu.max of the mount's top, of /a, of /a/b; NULL: no such file */
        uint64_t milli;
        const char *name;
} TREES[] = {
        { "/", "/a/b", NULL, "max 100000\n", "350000 100000\n", 3500, "/a/b" },
        { "/", "/a/b", NULL, "150000 100000\n", "350000 100000\n", 1500, "/a" }, /* the one above has less */
        { "/", "/a/b", NULL, "max 100000\n", "max 100000\n", 0, "" },
        { "/", "/a", NULL, "200000 100000\n", "50000 100000\n", 2000, "/a" }, /* below us is not ours */
        { "/", "/", "200000 100000\n", "100000 100000\n", NULL, 2000, "/" },  /* a container's own top */
        { "/x", "/x/a", "200000 100000\n", "100000 100000\n", NULL, 1000, "/a" },
        { "/x", "/x", "200000 100000\n", NULL, NULL, 2000, "/" },
        { "/x", "/xa", "200000 100000\n", "100000 100000\n", NULL, 0, "" }, /* not in the part that is mounted */
        { "/", "/../a", "200000 100000\n", "100000 100000\n", NULL, 0, "" },
        { "/", "/gone/away", "200000 100000\n", NULL, NULL, 2000, "/" },
};

static void tree_text(const struct tree *tree, const char *path, const char *text) {
        if (text)
                tree_file(tree, path, text);
}

START_TEST(the_smallest_quota_of_our_group_and_those_above_it_counts) {
        struct cpus cpus = { .n_affinity = 8 };
        char text[512];
        struct tree tree;

        tree_make(&tree);
        snprintf(text, sizeof(text), "1:cpu:/\n0::%s\n", TREES[_i].path);
        tree_file(&tree, "proc/cgroup", text);
        snprintf(text, sizeof(text), OTHER_MOUNTS "35 24 0:30 %s %s/cgroup rw - cgroup2 cgroup2 rw\n", TREES[_i].root,
                 tree.root);
        tree_file(&tree, "proc/mountinfo", text);
        tree_dir(&tree, "cgroup/a/b");
        tree_text(&tree, "cgroup/cpu.max", TREES[_i].above);
        tree_text(&tree, "cgroup/a/cpu.max", TREES[_i].group);
        tree_text(&tree, "cgroup/a/b/cpu.max", TREES[_i].below);

        snprintf(text, sizeof(text), "%s/proc", tree.root);
        cpus_find_quota(text, &cpus);
        ck_assert_uint_eq(cpus.quota_milli, TREES[_i].milli);
        ck_assert_str_eq(cpus.group, TREES[_i].name);
        tree_remove(&tree);
}
END_TEST

START_TEST(without_its_files_there_is_no_quota) {
        struct cpus cpus = { .n_affinity = 3 };

        cpus_find_quota("/proc/self/fd/nowhere", &cpus);
        ck_assert_uint_eq(cpus.quota_milli, 0);
        ck_assert_uint_eq(cpus_n_threads(&cpus), 3);
}
END_TEST

/* ---- what follows -------------------------------------------------------------------------------------------- */

static const struct {
        struct cpus cpus;
        uint32_t n_threads;
        const char *text;
} ANSWERS[] = {
        { { 8, 0, "" }, 8, "affinity 8 CPUs" },
        { { 8, 3500, "/a" }, 4, "affinity 8 CPUs, cgroup quota 3.5 (/a)" },
        { { 2, 3500, "/a" }, 2, "affinity 2 CPUs, cgroup quota 3.5 (/a)" },
        { { 1, 1, "/" }, 1, "affinity 1 CPU, cgroup quota 0.001 (/)" },
        { { 4, 1000, "/" }, 1, "affinity 4 CPUs, cgroup quota 1 (/)" },
};

START_TEST(the_smaller_one_counts_rounded_up) {
        char text[CPUS_TEXT_MAX];

        ck_assert_uint_eq(cpus_n_threads(&ANSWERS[_i].cpus), ANSWERS[_i].n_threads);
        ck_assert_str_eq(cpus_text(&ANSWERS[_i].cpus, text), ANSWERS[_i].text);
}
END_TEST

static const struct {
        const char *text;
        struct cpus cpus;
        uint64_t milli;
} SHARES[] = {
        { "0", { 8, 0, "" }, 0 },          { "350", { 8, 0, "" }, 3500 },
        { "350", { 1, 0, "" }, 3500 }, /* more than there is: no ceiling in effect */
        { "1", { 8, 0, "" }, 10 },         { "60%", { 8, 0, "" }, 4800 },
        { "60%", { 8, 2500, "/" }, 1500 }, { "100%", { 3, 0, "" }, 3000 },
        { "1%", { 8, 1, "/" }, 1 },        { "1000000", { 8, 0, "" }, 10000000 },
};

START_TEST(a_share_is_of_one_cpu_or_of_all_that_are_to_be_had) {
        struct cpu_share share;

        ck_assert_int_eq(cpu_share_parse(SHARES[_i].text, &share), 0);
        ck_assert_uint_eq(cpu_share_milli(&share, &SHARES[_i].cpus), SHARES[_i].milli);
}
END_TEST

START_TEST(what_is_no_share_is_refused) {
        static const char *const texts[] = { "",   "%",    "x",   "-1",      "+1",  " 5",  "5 ",
                                             "0%", "101%", "5%%", "1000001", "5.5", "0x5", "99999999999999999999999" };
        struct cpu_share share = { .percent = 7 };

        for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
                ck_assert_msg(cpu_share_parse(texts[i], &share) == -EINVAL, "\"%s\" was taken", texts[i]);
        ck_assert_uint_eq(share.percent, 7);
}
END_TEST

START_TEST(a_narrower_mask_is_seen_the_next_time) {
        cpu_set_t before, one;
        struct cpus cpus;

        ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
        cpus_find(&cpus);
        ck_assert_uint_eq(cpus.n_affinity, (uint32_t)CPU_COUNT(&before));

        CPU_ZERO(&one);
        for (int i = 0; CPU_COUNT(&one) == 0; i++)
                if (CPU_ISSET(i, &before))
                        CPU_SET(i, &one);
        ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
        cpus_find(&cpus);
        ck_assert_int_eq(sched_setaffinity(0, sizeof(before), &before), 0);
        ck_assert_uint_eq(cpus.n_affinity, 1);
        ck_assert_uint_eq(cpus_n_threads(&cpus), 1);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "parse", a_quota_is_a_share_of_its_period_and_what_is_none_is_none, ARRAY_LENGTH(MAXIMA) },
                { "parse", our_group_is_the_line_of_version_2, ARRAY_LENGTH(GROUPS) },
                { "parse", the_tree_of_version_2_is_found_among_the_mounts, ARRAY_LENGTH(MOUNTS) },
                { "parse", a_name_that_does_not_fit_is_none, 0 },
                { "parse", cut_files_are_survived, 0 },
                { "tree", the_smallest_quota_of_our_group_and_those_above_it_counts, ARRAY_LENGTH(TREES) },
                { "tree", without_its_files_there_is_no_quota, 0 },
                { "answer", the_smaller_one_counts_rounded_up, ARRAY_LENGTH(ANSWERS) },
                { "answer", a_share_is_of_one_cpu_or_of_all_that_are_to_be_had, ARRAY_LENGTH(SHARES) },
                { "answer", what_is_no_share_is_refused, 0 },
                { "answer", a_narrower_mask_is_seen_the_next_time, 0 },
        };

        return suite_run("cpus", rows, ARRAY_LENGTH(rows));
}
