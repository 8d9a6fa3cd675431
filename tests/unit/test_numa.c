/* Which memory node is near to a device, and memory that is bound to a node: what clients may name, what sysfs says,
 * and what the kernel then says of the memory. */

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/ring/numa.h"
#include "daemon/ring/segment.h"
#include "proto/base/bus_id.h"
#include "tests/support/suite.h"
#include "tests/support/temporary.h"

#define BYTES (4u << 20)

START_TEST(a_bus_id_is_read_in_each_of_its_spellings_and_written_in_one) {
        static const char *const IDS[][2] = {
                { "0000:1b:00.0", "0000:1b:00.0" },         { "0000:1B:00.0", "0000:1b:00.0" },
                { "00000000:1B:1F.7", "0000:1b:1f.7" },     { "10000:e1:00.0", "10000:e1:00.0" },
                { "FFFFFFFF:FF:1F.7", "ffffffff:ff:1f.7" },
        };
        char id[BUS_ID_MAX];

        for (size_t i = 0; i < sizeof(IDS) / sizeof(IDS[0]); i++) {
                ck_assert_msg(bus_id_read(IDS[i][0], id), "%s", IDS[i][0]);
                ck_assert_str_eq(id, IDS[i][1]);
        }
}
END_TEST

START_TEST(what_is_no_bus_id_is_refused) {
        static const char *const TEXTS[] = {
                "",
                "0",
                "1b:00.0",
                "000:1b:00.0",
                "000000000:1b:00.0",
                "0000:1b:00",
                "0000:1b:00.",
                "0000:1b:00.0 ",
                " 0000:1b:00.0",
                "0000:1b:00.0\n",
                "0000:1b:00.00",
                "0000:1b:00.8",
                "0000:1b:20.0",
                "0000:1:00.0",
                "0000:1bb:00.0",
                "0000:1g:00.0",
                "0000-1b-00.0",
                "0000:1b:00:0",
                "0000:1b:00.0/../../../../../etc/passwd",
                "../0000:1b:00.0",
                "../../../../../etc/passwd",
                "-001:1b:00.0",
                "0x00:1b:00.0",
                "GPU-5a1b",
        };
        char id[BUS_ID_MAX] = "untouched";

        for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); i++) {
                ck_assert_msg(!bus_id_read(TEXTS[i], id), "\"%s\"", TEXTS[i]);
                ck_assert_str_eq(id, "untouched");
        }
        ck_assert(!bus_id_read(NULL, id));
}
END_TEST

static char root[TEMPORARY_MAX];

static void make_folder(const char *path) {
        char full[TEMPORARY_MAX + 300];

        snprintf(full, sizeof(full), "%s/%s", root, path);
        mkdir(full, 0700);
}

/* `says` is what stands in numa_node of this device; NULL: it has no such file. */
static void make_device(const char *id, const char *says) {
        char path[TEMPORARY_MAX + 200];
        FILE *file;

        snprintf(path, sizeof(path), "bus/pci/devices/%s", id);
        make_folder(path);
        if (!says)
                return;
        snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/numa_node", root, id);
        file = fopen(path, "we");
        ck_assert_ptr_nonnull(file);
        fputs(says, file);
        fclose(file);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk) {
        return remove(path);
}

START_TEST(the_node_of_a_device_is_what_sysfs_says) {
        static const struct {
                const char *id, *says;
                int node;
        } DEVICES[] = {
                { "0000:1b:00.0", "0\n", 0 },        { "0000:c1:00.0", "1\n", 1 },
                { "10000:01:00.0", "1023\n", 1023 }, { "0000:02:00.0", "-1\n", -1 },
                { "0000:03:00.0", "", -1 },          { "0000:04:00.0", "near\n", -1 },
                { "0000:05:00.0", "1024\n", -1 },    { "0000:06:00.0", "99999999999999999\n", -1 },
                { "0000:07:00.0", NULL, -1 },
        };
        static const char *const FOLDERS[] = { "bus", "bus/pci", "bus/pci/devices" };

        temporary_folder(root, sizeof(root));
        for (size_t i = 0; i < sizeof(FOLDERS) / sizeof(FOLDERS[0]); i++)
                make_folder(FOLDERS[i]);
        for (size_t i = 0; i < sizeof(DEVICES) / sizeof(DEVICES[0]); i++) {
                make_device(DEVICES[i].id, DEVICES[i].says);
                ck_assert_int_eq(numa_node_of_device(root, DEVICES[i].id), DEVICES[i].node);
        }
        ck_assert_int_eq(numa_node_of_device(root, "0000:08:00.0"), -1);
        ck_assert_int_eq(numa_node_of_device("/no such folder", "0000:1b:00.0"), -1);
        nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
END_TEST

/* The line of /proc/self/numa_maps about memory that begins at `base`. */
static void read_policy(const void *base, char *ret_line, size_t size) {
        FILE *file = fopen("/proc/self/numa_maps", "re");
        char line[1024];

        ret_line[0] = '\0';
        while (file && fgets(line, sizeof(line), file))
                if (strtoull(line, NULL, 16) == (uintptr_t)base)
                        snprintf(ret_line, size, "%s", line);
        if (file)
                fclose(file);
}

START_TEST(memory_is_bound_before_it_is_touched) {
        struct segment_options options = { .name = "numa", .n_bytes = BYTES, .numa_node = 0, .n_threads = 1 };
        struct segment segment;
        char line[1024];
        struct why why;

        if (numa_start() < 0 || access("/proc/self/numa_maps", R_OK) < 0) {
                printf("skip: this system does not tell of its memory nodes\n");
                return;
        }
        ck_assert_int_eq(segment_init(&segment, &options, &why), 0);
        if (strstr(segment.obtained, "not bound")) {
                printf("skip: this container does not let memory be bound\n");
        } else {
                ck_assert_ptr_nonnull(strstr(segment.obtained, ", node 0"));
                read_policy(segment.base, line, sizeof(line));
                ck_assert_msg(strstr(line, " prefer") != NULL, "%s", line);
                ck_assert_msg(strstr(line, ":0 ") != NULL, "%s", line);
                ck_assert_msg(strstr(line, "N0=1024") != NULL, "%s", line); /* all of it */
        }
        segment_fini(&segment);
        numa_stop();
}
END_TEST

START_TEST(memory_is_there_where_it_cannot_be_bound) {
        struct segment_options options = { .name = "numa", .n_bytes = BYTES, .numa_node = 0, .n_threads = 1 };
        struct segment segment;
        struct why why;

        ck_assert_int_eq(segment_init(&segment, &options, &why), 0); /* numa_start() was not called */
        ck_assert_ptr_nonnull(strstr(segment.obtained, ", not bound to node 0"));
        segment.base[BYTES - 1] = 1;
        segment_fini(&segment);
        if (numa_start() < 0)
                return;
        options.numa_node = 1000; /* which no machine of ours has */
        ck_assert_int_eq(segment_init(&segment, &options, &why), 0);
        ck_assert_ptr_nonnull(strstr(segment.obtained, ", not bound to node 1000"));
        segment_fini(&segment);
        options.numa_node = -1;
        ck_assert_int_eq(segment_init(&segment, &options, &why), 0);
        ck_assert_ptr_null(strstr(segment.obtained, "node"));
        segment_fini(&segment);
        numa_stop();
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "devices", a_bus_id_is_read_in_each_of_its_spellings_and_written_in_one, 0 },
                { "devices", what_is_no_bus_id_is_refused, 0 },
                { "devices", the_node_of_a_device_is_what_sysfs_says, 0 },
                { "memory", memory_is_bound_before_it_is_touched, 0 },
                { "memory", memory_is_there_where_it_cannot_be_bound, 0 },
        };

        return suite_run("numa", rows, sizeof(rows) / sizeof(rows[0]));
}
