/* Settings and the configuration file: what is taken, what is refused and with which words; and the listening socket
 * that is made from them. That manual and shipped configuration agree with the table is test_documents.c's. */

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/core/config.h"
#include "daemon/core/listen.h"
#include "proto/frame.h"
#include "tests/support/tree.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct tree tree;

static const char *path_of(const char *name) {
        static char path[128];

        snprintf(path, sizeof(path), "%s/%s", tree.root, name);
        return path;
}

static int read_config(const char *text, struct config *config, struct why *why) {
        tree_file(&tree, "test.conf", text);
        return config_read(path_of("test.conf"), config, why);
}

/* ---- what is taken ------------------------------------------------------------------------------------------- */

START_TEST(an_empty_file_gives_the_defaults) {
        struct config config;
        struct why why;

        tree_make(&tree);
        ck_assert_int_eq(read_config("", &config, &why), 0);
        for (size_t i = 0; i < N_SETTINGS; i++) {
                struct settings written = { 0 };
                char now[32], expected[32];

                if (!SETTINGS[i].initial)
                        continue; /* worked out */
                ck_assert_int_eq(setting_parse(&SETTINGS[i], &written, SETTINGS[i].initial, &why), 0);
                ck_assert_str_eq(setting_value(&SETTINGS[i], &config.settings, now),
                                 setting_value(&SETTINGS[i], &written, expected));
                settings_fini(&written);
        }
        ck_assert_int_eq(config.settings.workers, 0); /* how many that is, is found out when they begin */
        ck_assert_str_ne(config.settings.index_dir, "");
        ck_assert_uint_eq(config.n_datasets, 0);
        config_fini(&config);
        config_fini(&config); /* takes an empty one */
        tree_remove(&tree);
}
END_TEST

START_TEST(what_is_written_is_what_is_in_force) {
        struct config config;
        struct why why;
        int r;

        tree_make(&tree);
        r = read_config("# a comment\nworkers = 3\nnice = 5\ncpu_ceiling = \"60%\"\nmemory_limit = \"1536MiB\"\nslots "
                        "= 64\nreader = threads\n"
                        "socket = \"/tmp/a.sock\"\nlog_level = \"debug\"\n"
                        "dataset \"a\" {\n path = \"/data/a\"\n}\n"
                        "dataset \"b c\" { path = \"/data/b\" format = \"imagefolder\" }\n",
                        &config, &why);
        if (r < 0)
                ck_abort_msg("%s", why.text);
        ck_assert_int_eq(config.settings.workers, 3);
        ck_assert_int_eq(config.settings.nice, 5);
        ck_assert_str_eq(config.settings.cpu_ceiling, "60%");
        ck_assert_uint_eq(config.settings.memory_limit, 3ull << 29);
        ck_assert_int_eq(config.settings.slots, 64);
        ck_assert_str_eq(config.settings.reader, "threads");
        ck_assert_str_eq(config.settings.socket, "/tmp/a.sock");
        ck_assert_str_eq(config.settings.log_level, "debug");
        ck_assert_uint_eq(config.n_datasets, 2);
        ck_assert_str_eq(config.datasets[0].name, "a");
        ck_assert_str_eq(config.datasets[0].path, "/data/a");
        ck_assert_str_eq(config.datasets[0].format, "auto");
        ck_assert_str_eq(config.datasets[1].name, "b c");
        config_fini(&config);
        tree_remove(&tree);
}
END_TEST

/* All of a dataset's keys; and that none of them has to be there. */
START_TEST(a_dataset_with_an_origin_has_what_is_written_and_else_the_defaults) {
        struct dataset_setting *dataset;
        struct config config;
        struct why why;

        tree_make(&tree);
        if (read_config("stage_nodes = \"n1, n2\"\nstage_network = \"fd00::/8\"\n"
                        "dataset \"a\" {\n path = \"/no/such/a\"\n origin = \"s3://bucket/a?x\"\n pack = yes\n"
                        " shard_size = \"64MiB\"\n unpack_limit = 1GiB\n connections = 4\n"
                        " prepare = \"resize(short=256) jpeg(90)\"\n credentials = \"/etc/keys\"\n}\n"
                        "dataset \"b\" { path = \"/b\" origin = \"file:///c\" }\ndataset \"c\" { path = \"/c\" }\n",
                        &config, &why) < 0)
                ck_abort_msg("%s", why.text);
        ck_assert_str_eq(config.settings.stage_nodes, "n1, n2");
        ck_assert_str_eq(config.settings.stage_network, "fd00::/8");
        dataset = &config.datasets[0];
        ck_assert_str_eq(dataset->origin, "s3://bucket/a?x");
        ck_assert(dataset->pack);
        ck_assert_uint_eq(dataset->shard_size, 64 << 20);
        ck_assert_uint_eq(dataset->unpack_limit, 1 << 30);
        ck_assert_int_eq(dataset->connections, 4);
        ck_assert_str_eq(dataset->prepare, "resize(short=256) jpeg(90)");
        ck_assert_str_eq(dataset->credentials, "/etc/keys");
        ck_assert_str_eq(config.datasets[2].origin, "");

        dataset = &config.datasets[1];
        for (size_t i = 0; i < N_DATASET_SETTINGS; i++) {
                struct dataset_setting written = { 0 };
                char now[32], expected[32];

                if (!DATASET_SETTINGS[i].initial || strcmp(DATASET_SETTINGS[i].name, "origin") == 0)
                        continue;
                ck_assert_int_eq(setting_parse(&DATASET_SETTINGS[i], &written, DATASET_SETTINGS[i].initial, &why), 0);
                ck_assert_str_eq(setting_value(&DATASET_SETTINGS[i], dataset, now),
                                 setting_value(&DATASET_SETTINGS[i], &written, expected));
                dataset_setting_fini(&written);
        }
        config_fini(&config);
        tree_remove(&tree);
}
END_TEST

/* A reload writes the old value back where a restart is needed. */
START_TEST(each_value_can_be_written_and_read_back) {
        struct settings copy = { 0 };
        struct config config;
        struct why why;

        tree_make(&tree);
        ck_assert_int_eq(read_config("memory_limit = \"123456789\"\nworkers = 4096\n", &config, &why), 0);
        for (size_t i = 0; i < N_SETTINGS; i++) {
                char buffer[32], again[32];
                const char *text = setting_value(&SETTINGS[i], &config.settings, buffer);

                if (setting_parse(&SETTINGS[i], &copy, text, &why) < 0)
                        ck_abort_msg("%s", why.text);
                ck_assert_str_eq(setting_value(&SETTINGS[i], &copy, again), text);
        }
        config_fini(&config);
        settings_fini(&copy);
        tree_remove(&tree);
}
END_TEST

/* What the rows print as comments, with the marks of the comments taken away from keys and sections. */
START_TEST(the_printed_configuration_says_what_is_in_force_without_one) {
        char *printed = NULL, *text, *out;
        struct config config, empty;
        struct why why;
        size_t size;
        FILE *file = open_memstream(&printed, &size);

        ck_assert_ptr_nonnull(file);
        config_print(file);
        fclose(file);
        text = out = malloc(size + 1);
        for (const char *line = printed; *line; line += strcspn(line, "\n") + 1)
                out += sprintf(out, "%.*s\n", (int)strcspn(line, "\n"), line + (*line == '#' && line[1] != ' '));
        for (char *at = text; (at = strstr(at, "\n#    ")); at++)
                at[1] = ' ';
        tree_make(&tree);
        setenv("CACHE_DIRECTORY", "/var/cache/dataloaderd", 1);
        if (read_config(text, &config, &why) < 0)
                ck_abort_msg("%s", why.text);
        ck_assert_int_eq(read_config("dataset \"NAME\" { path = \"/data/photos/train\" }", &empty, &why), 0);
        for (size_t i = 0; i < N_SETTINGS; i++) {
                char value[32], expected[32];

                ck_assert_str_eq(setting_value(&SETTINGS[i], &config.settings, value),
                                 setting_value(&SETTINGS[i], &empty.settings, expected));
        }
        ck_assert_uint_eq(config.n_datasets, 2);
        for (size_t i = 0; i < N_DATASET_SETTINGS; i++) {
                char value[32], expected[32];

                ck_assert_str_eq(setting_value(&DATASET_SETTINGS[i], &config.datasets[1], value),
                                 setting_value(&DATASET_SETTINGS[i], &empty.datasets[0], expected));
        }
        unsetenv("CACHE_DIRECTORY");
        config_fini(&config);
        config_fini(&empty);
        free(text);
        free(printed);
        tree_remove(&tree);
}
END_TEST

static void note_what_stays(void *userdata, const struct setting *setting, const char *now, const char *next) {
        char *told = userdata;
        size_t n = strlen(told);

        snprintf(told + n, 256 - n, "%s %s %s;", setting->name, now, next);
}

/* Numbers and flags where a reload may, texts by changing hands; what takes a restart is told, and stays. */
START_TEST(a_reload_changes_what_it_may_and_tells_what_takes_a_restart) {
        struct config config, next;
        char told[256] = "";
        struct why why;

        tree_make(&tree);
        ck_assert_int_eq(
                read_config("slots = 5\nread_depth = 8\nlog_level = debug\nadmins = \"1, 2\"\n", &config, &why), 0);
        ck_assert_int_eq(
                read_config("slots = 6\nread_depth = 9\nlog_level = error\nadmins = \"3\"\npaths = yes\n", &next, &why),
                0);
        settings_reload(&config.settings, &next.settings, note_what_stays, told);
        ck_assert_str_eq(told, "read_depth 8 9;");
        ck_assert_uint_eq(config.settings.slots, 6);
        ck_assert_uint_eq(config.settings.read_depth, 8);
        ck_assert_str_eq(config.settings.log_level, "error");
        ck_assert(config.settings.paths);
        ck_assert(admins_has_user(&config.settings.admin_list, 3) && !admins_has_user(&config.settings.admin_list, 1));
        config_fini(&next);
        ck_assert_str_eq(config.settings.admins, "3");
        config_fini(&config);
        tree_remove(&tree);
}
END_TEST

/* ---- what is refused ----------------------------------------------------------------------------------------- */

/* A line of a file, and what the message has to say of it: file and line are looked for in all of them. */
static const struct {
        const char *line, *says[3];
} MISTAKES[] = {
        { "workers = 4097", { "workers", "4097", "0 to 4096" } },
        { "workers = -1", { "workers", "-1", "0 to 4096" } },
        { "workers = \"+1\"", { "workers", "+1", "0 to 4096" } },
        { "workers = two", { "workers", "two", "0 to 4096" } },
        { "workers = 0x10", { "workers", "0x10", "0 to 4096" } },
        { "workers = \"\"", { "workers", "0 to 4096" } },
        { "workers = 99999999999999999999999", { "workers", "0 to 4096" } },
        { "workers = { 1, 2 }", { "{" } },
        { "nice = 20", { "nice", "20", "0 to 19" } },
        { "nice = -1", { "nice", "-1", "0 to 19" } },
        { "cpu_ceiling = \"101%\"", { "cpu_ceiling", "101%", "1% to 100% of all" } },
        { "cpu_ceiling = 1.5", { "cpu_ceiling", "1.5", "percent of one CPU" } },
        { "cpu_ceiling = \"\"", { "cpu_ceiling", "percent of one CPU" } },
        { "slots = 1", { "slots", "2 to 64" } },
        { "slots = 65", { "slots", "2 to 64" } },
        { "read_depth = 0", { "read_depth", "1 to 1024" } },
        { "max_pixels = 0", { "max_pixels", "1 to 68719476736" } },
        { "max_pixels = 18446744073709551617", { "max_pixels", "1 to 68719476736" } },
        { "memory_limit = \"8 GiBs\"", { "memory_limit", "8 GiBs", "KiB, MiB or GiB" } },
        { "memory_limit = \"99999999999 GiB\"", { "memory_limit", "KiB, MiB or GiB" } },
        { "memory_limit = \"1KiB\"", { "memory_limit", "too small", "1048576" } },
        { "reader = uring", { "reader", "uring", "auto io_uring threads" } },
        { "reader = \"auto io_uring\"", { "reader", "auto io_uring threads" } },
        { "reader = \"\"", { "reader", "auto io_uring threads" } },
        { "log_level = \"war\"", { "log_level", "war", "error warning info debug" } },
        { "lock_memory = yes", { "lock_memory", "yes", "try no" } },
        { "socket_mode = rw", { "socket_mode", "rw", "0660" } },
        { "socket_mode = \"0888\"", { "socket_mode", "0888", "0660" } },
        { "socket = \"\"", { "socket", "1 to 107" } },
        { "workerz = 2", { "workerz" } },
        { "workers 2", { NULL } },
        { "dataset \"a/b\" { path = \"/data\" }", { "a/b", "without '/'" } },
        { "dataset \"\" { path = \"/data\" }", { "not a valid name" } },
        { "dataset \".a\" { path = \"/data\" }", { ".a", "not beginning with '.'" } },
        { "dataset \"a\" { }", { "\"a\"", "path", "absolute" } },
        { "dataset \"a\" { path = \"data\" }", { "\"a\"", "\"data\"", "absolute" } },
        { "dataset \"a\" { path = \"/data\" format = \"tar\" }", { "\"a\"", "format", "imagefolder" } },
        { "dataset \"a\" { path = \"/data\" size = 3 }", { "size" } },
        { "dataset \"a\" { path = \"/data\" skip_line = 3 }", { "skip_line", "skip_lines" } },
        { "dataset \"a\" { path = \"/data\" skip_lines = x }", { "\"a\"", "skip_lines", "0 to 1000000" } },
        { "dataset \"a\" { path = \"/data\" format = \"csv\" count = 3 }",
          { "\"a\"", "does not take count", "files, raw" } },
        { "dataset { path = \"/data\" }", { NULL } },
        { "dataset \"a\" { path = \"/data\" origin = \"ftp://h/x\" }",
          { "\"a\"", "origin", "http, https, s3, gs, hf or file" } },
        { "dataset \"a\" { path = \"/data\" origin = \"http://\" }", { "origin", "has no host" } },
        { "dataset \"a\" { path = \"/data\" origin = \"file://data\" }", { "origin", "file:///path" } },
        { "dataset \"a\" { path = \"/data\" origin = \"https://h/a b\" }", { "origin", "%20" } },
        { "dataset \"a\" { path = \"/data\" origin = \"https://me:secret@h/x\" }", { "origin", "credentials" } },
        { "dataset \"a\" { path = \"/\" origin = \"https://h/x\" }", { "\"a\"", "path" } },
        { "dataset \"a\" { origin = \"https://h/x\" }", { "\"a\"", "path", "missing" } },
        { "dataset \"a\" { path = \"/data\" origin_kind = \"torrent\" }",
          { "origin_kind", "torrent", "manifest list" } },
        { "dataset \"a\" { path = \"/data\" origin = \"https://h/x\" origin_kind = \"s3\" }",
          { "origin_kind", "s3://" } },
        { "dataset \"a\" { path = \"/data\" origin = \"https://h/folder/\" }", { "origin", "manifest" } },
        { "dataset \"a\" { path = \"/data\" endpoint = \"minio:9000\" }", { "endpoint", "https://HOST" } },
        { "dataset \"a\" { path = \"/data\" credentials = \"keys\" }", { "credentials", "absolute" } },
        { "dataset \"a\" { path = \"/data\" ca_file = \"ca.pem\" }", { "ca_file", "absolute" } },
        { "dataset \"a\" { path = \"/data\" connections = 1025 }", { "connections", "0 to 1024" } },
        { "dataset \"a\" { path = \"/data\" unpack = \"maybe\" }", { "unpack", "auto yes no" } },
        { "dataset \"a\" { path = \"/data\" unpack_limit = \"lots\" }", { "unpack_limit", "KiB, MiB or GiB" } },
        { "dataset \"a\" { path = \"/data\" pack = true }", { "pack", "true", "yes no" } },
        { "dataset \"a\" { path = \"/data\" shard_size = \"1KiB\" }", { "shard_size", "too small" } },
        { "dataset \"a\" { path = \"/data\" shard_size = \"2TiB\" }", { "shard_size", "too large" } },
        { "dataset \"a\" { path = \"/data\" sharing = \"nfs\" }", { "sharing", "auto local shared" } },
        { "dataset \"a\" { path = \"/data\" stall_timeout = 1 }", { "stall_timeout", "5 to 86400" } },
        { "dataset \"a\" { path = \"/data\" weight = 0 }", { "weight", "1 to 1000" } },
        { "dataset \"a\" { path = \"/data\" prepare = \"rotate(3)\" }", { "prepare", "rotate" } },
        { "stage_nodes = \"n1, -oProxyCommand=x\"", { "stage_nodes", "-oProxyCommand", "host" } },
        { "stage_nodes = \"n1;n2\"", { "stage_nodes", "n1;n2" } },
        { "stage_network = \"10.0.0.0\"", { "stage_network", "10.0.0.0/16" } },
        { "stage_network = \"10.0.0.0/33\"", { "stage_network", "10.0.0.0/16" } },
        { "dataset \"twice\" { path = \"/a\" } dataset \"twice\" { path = \"/b\" }", { "twice" } },
};

START_TEST(each_mistake_is_refused_with_file_line_key_and_what_is_allowed) {
        static const char untouched[] = "untouched";
        struct config config = { .settings.socket = (char *)(uintptr_t)untouched };
        char text[512], where[160];
        struct why why = { 0 };

        tree_make(&tree);
        snprintf(text, sizeof(text), "# first\n\n%s\n# last\n", MISTAKES[_i].line);
        ck_assert_msg(read_config(text, &config, &why) < 0, "%s was taken", MISTAKES[_i].line);
        ck_assert_ptr_eq(config.settings.socket, untouched);
        snprintf(where, sizeof(where), "%s:3: ", path_of("test.conf"));
        ck_assert_msg(strncmp(why.text, where, strlen(where)) == 0, "%s: %s", MISTAKES[_i].line, why.text);
        for (size_t i = 0; i < 3 && MISTAKES[_i].says[i]; i++)
                ck_assert_msg(strstr(why.text, MISTAKES[_i].says[i]) != NULL, "%s: no \"%s\" in: %s", MISTAKES[_i].line,
                              MISTAKES[_i].says[i], why.text);
        tree_remove(&tree);
}
END_TEST

/* Comments of each kind, and what only looks like one. */
START_TEST(lines_are_counted_as_an_editor_counts_them) {
        static const struct {
                const char *before;
                int line;
        } TEXTS[] = {
                { "", 1 },
                { "# one\n# two\n#\n\n# five\n", 6 },
                { "// one\n  // two\n", 3 },
                { "/* one\n two\n*/\n", 4 },
                { "workers = 2 # it's one\n", 2 },
                { "socket = \"/a # no \\\" comment\" // one\n", 2 },
                { "socket = '/a // no comment'\n", 2 },
                { "socket = \"/a/* no comment\"\nindex_dir = \"*/ nor here\"\n", 3 },
                { "index_dir = /a//b\n", 2 },
                { "dataset \"a\" { # one\n  path = \"/a\" # two\n} # three\n", 4 },
        };
        struct config config;
        char text[512], where[160];
        struct why why;

        tree_make(&tree);
        for (size_t i = 0; i < ARRAY_LENGTH(TEXTS); i++) {
                snprintf(text, sizeof(text), "%sslots = 1000\n", TEXTS[i].before);
                ck_assert_int_eq(read_config(text, &config, &why), -EINVAL);
                snprintf(where, sizeof(where), "%s:%d: slots: ", path_of("test.conf"), TEXTS[i].line);
                ck_assert_msg(strncmp(why.text, where, strlen(where)) == 0, "%zu: %s", i, why.text);

                if (read_config(TEXTS[i].before, &config, &why) < 0)
                        ck_abort_msg("%zu: %s", i, why.text);
                if (strstr(TEXTS[i].before, "socket"))
                        ck_assert_ptr_nonnull(strstr(config.settings.socket, "no"));
                config_fini(&config);
        }
        ck_assert_int_lt(read_config("workers = 2\n/* never closed\nslots = 3\n", &config, &why), 0);
        ck_assert_ptr_nonnull(strstr(why.text, "'*/' is missing"));
        tree_remove(&tree);
}
END_TEST

START_TEST(what_is_no_readable_file_is_refused_by_its_name) {
        static const char *const NAMES[] = { "missing.conf", "folder", "fifo", "folder/below/missing" };
        struct config config;
        struct why why;

        tree_make(&tree);
        tree_dir(&tree, "folder");
        tree_fifo(&tree, "fifo");
        for (size_t i = 0; i < ARRAY_LENGTH(NAMES); i++) {
                ck_assert_int_lt(config_read(path_of(NAMES[i]), &config, &why), 0);
                ck_assert_msg(strstr(why.text, path_of(NAMES[i])) != NULL, "%s", why.text);
        }
        tree_remove(&tree);
}
END_TEST

/* ---- the socket ---------------------------------------------------------------------------------------------- */

static bool can_connect(const char *path) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        struct sockaddr_un address;
        bool can;

        ck_assert_int_eq(dlp_socket_address(path, &address), 0);
        can = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
        close(fd);
        return can;
}

/* Its path comes from settings that a reload frees. */
START_TEST(the_socket_file_goes_at_the_end_whatever_became_of_the_settings) {
        struct listener listener;
        struct stat status;
        char path[128];
        struct why why;

        tree_make(&tree);
        snprintf(path, sizeof(path), "%s", path_of("d.sock"));
        if (listener_open(&listener, path, 0620, &why) < 0)
                ck_abort_msg("%s", why.text);
        ck_assert(can_connect(path_of("d.sock")));
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_uint_eq(status.st_mode & 07777, 0620);
        memset(path, 'x', 40);
        close(listener.fd);
        listener_close(&listener);
        listener_close(&listener); /* once more is nothing */
        ck_assert_int_eq(access(path_of("d.sock"), F_OK), -1);
        ck_assert_int_eq(access(path_of("d.sock.lock"), F_OK), -1);
        tree_remove(&tree);
}
END_TEST

START_TEST(a_served_socket_is_left_alone_and_a_stale_one_is_replaced) {
        struct listener first, second;
        char path[128];
        struct why why;

        tree_make(&tree);
        snprintf(path, sizeof(path), "%s", path_of("d.sock"));
        ck_assert_int_eq(listener_open(&first, path, 0600, &why), 0);
        ck_assert_int_eq(listener_open(&second, path, 0600, &why), -EADDRINUSE);
        ck_assert_ptr_nonnull(strstr(why.text, path));
        listener_close(&second);
        ck_assert(can_connect(path));

        close(first.fd); /* as if it had been killed: the files stay */
        close(first.lock_fd);
        free(first.path);
        ck_assert_int_eq(access(path, F_OK), 0);
        ck_assert_int_eq(listener_open(&second, path, 0600, &why), 0);
        ck_assert(can_connect(path));
        close(second.fd);
        listener_close(&second);

        tree_file(&tree, "d.sock", "a file of somebody's");
        ck_assert_int_eq(listener_open(&second, path, 0600, &why), -EEXIST);
        ck_assert_int_eq(access(path, F_OK), 0);
        tree_remove(&tree);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("settings");
        TCase *settings = tcase_create("settings"), *sockets = tcase_create("socket");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_test(settings, an_empty_file_gives_the_defaults);
        tcase_add_test(settings, what_is_written_is_what_is_in_force);
        tcase_add_test(settings, a_dataset_with_an_origin_has_what_is_written_and_else_the_defaults);
        tcase_add_test(settings, each_value_can_be_written_and_read_back);
        tcase_add_test(settings, the_printed_configuration_says_what_is_in_force_without_one);
        tcase_add_test(settings, a_reload_changes_what_it_may_and_tells_what_takes_a_restart);
        tcase_add_loop_test(settings, each_mistake_is_refused_with_file_line_key_and_what_is_allowed, 0,
                            (int)ARRAY_LENGTH(MISTAKES));
        tcase_add_test(settings, lines_are_counted_as_an_editor_counts_them);
        tcase_add_test(settings, what_is_no_readable_file_is_refused_by_its_name);
        suite_add_tcase(suite, settings);
        tcase_add_test(sockets, the_socket_file_goes_at_the_end_whatever_became_of_the_settings);
        tcase_add_test(sockets, a_served_socket_is_left_alone_and_a_stale_one_is_replaced);
        suite_add_tcase(suite, sockets);

        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
