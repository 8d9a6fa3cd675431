#include "daemon/core/settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/bytes.h"
#include "daemon/base/machine/cpus.h"
#include "daemon/pipeline/pool.h"
#include "daemon/staging/record/hosts.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"

#define AT(field) offsetof(struct settings, field)

static int check_hosts(const char *text, struct why *why) {
        const char *host;
        size_t n;
        int r;

        do
                r = hosts_next(&text, &host, &n, why);
        while (r > 0);
        return r;
}

/* An IPv4 or IPv6 address, a slash and the number of bits; MPI checks the rest. */
static int check_network(const char *text, struct why *why) {
        struct in6_addr address;
        char host[INET6_ADDRSTRLEN] = "";
        size_t n = strcspn(text, "/");
        unsigned long bits;
        char *end = NULL;
        int family = memchr(text, ':', n) ? AF_INET6 : AF_INET;

        if (n < sizeof(host))
                memcpy(host, text, n);
        bits = text[n] == '/' && text[n + 1] >= '0' && text[n + 1] <= '9' ? strtoul(text + n + 1, &end, 10) : 0;
        if (inet_pton(family, host, &address) == 1 && end && !*end && bits <= (family == AF_INET ? 32 : 128))
                return 0;
        return why_set(why, -EINVAL, "\"%s\" is not a network; write one such as 10.0.0.0/16", text);
}

static int check_admins(const char *text, struct why *why) {
        struct admins admins;
        int r = admins_parse(text, &admins, why);

        if (r == 0)
                admins_fini(&admins);
        return r;
}

const struct setting SETTINGS[] = {
        { "socket", SETTING_TEXT, AT(socket), "/run/dataloaderd/dataloaderd.sock", 0, DLP_SOCKET_PATH_MAX, NULL, "path",
          false, "where clients find the daemon; not used when systemd passes a socket" },
        { "socket_mode", SETTING_OCTAL, AT(socket_mode), "0660", 0, 4, NULL, "octal", false,
          "permissions of the socket: whoever may write to it can be served" },
        { "metrics_socket", SETTING_OPTIONAL, AT(metrics_socket), "", 0, DLP_SOCKET_PATH_MAX, NULL, "path", false,
          "where scrapers get the metrics over HTTP; empty: nowhere" },
        { "metrics_mode", SETTING_OCTAL, AT(metrics_mode), "0660", 0, 4, NULL, "octal", false,
          "permissions of that socket: whoever may write to it sees the jobs of all users" },
        { "workers", SETTING_NUMBER, AT(workers), "0", 0, WORKERS_MAX, NULL, "threads", true,
          "decode threads; 0 = the CPUs that this process may use, by affinity and by cgroup quota" },
        { "nice", SETTING_NUMBER, AT(nice), "0", 0, 19, NULL, "", true,
          "nice value of the threads that decode and make orders: with a higher one they leave the CPU to others" },
        { "cpu_ceiling", SETTING_SHARE, AT(cpu_ceiling), "0", 0, 16, NULL, "percent", true,
          "the most CPU time that the decode threads take together: percent of one CPU, or \"60%\" of all; "
          "0 = no limit" },
        { "memory_limit", SETTING_SIZE, AT(memory_limit), "8GiB", 1 << 20, UINT64_MAX, NULL, "bytes", false,
          "rings, buffers and tables together; what does not fit is refused" },
        { "admins", SETTING_TEXT, AT(admins), "root", 0, 4095, NULL, "users, @groups", true,
          "who may administer, beside the daemon's own user", check_admins },
        { "user_connections", SETTING_NUMBER, AT(user_connections), "50", 1, 100, NULL, "percent", true,
          "connections that a user may have: of those that other users leave" },
        { "user_jobs", SETTING_NUMBER, AT(user_jobs), "256", 1, 1024, NULL, "jobs", true,
          "jobs that a user may have at once" },
        { "user_memory", SETTING_NUMBER, AT(user_memory), "90", 1, 100, NULL, "percent", true,
          "memory that rings of a user may take: of what others leave of memory_limit" },
        { "index_dir", SETTING_TEXT, AT(index_dir), NULL, 0, 3072, NULL, "path", false,
          "where index files are kept; default: $CACHE_DIRECTORY, "
          "$XDG_CACHE_HOME/dataloaderd or ~/.cache/dataloaderd" },
        { "tokenizers", SETTING_TEXT, AT(tokenizers), "/etc/dataloaderd/tokenizers", 0, 3072, NULL, "path", true,
          "folder of NAME.json or NAME/tokenizer.json, which pipelines name in tokens(NAME)" },
        { "plugins", SETTING_OPTIONAL, AT(plugins), "", 0, 4096, NULL, "names", false,
          "plug-ins that are loaded, separated by blanks or commas: NAME is NAME.so in one of plugin_dirs" },
        { "plugin_dirs", SETTING_TEXT, AT(plugin_dirs),
          "/usr/local/lib/dataloaderd/plugins:/usr/lib/dataloaderd/plugins", 0, 4096, NULL, "paths", false,
          "folders in which plug-ins lie, with \":\" between them; nobody but root and the daemon's user may write there" },
        { "plugins_in", SETTING_CHOICE, AT(plugins_in), "process", 0, 0, "process daemon", "", false,
          "where plug-ins run: in processes of their own, or in the daemon, which then ends with a plug-in that crashes" },
        { "plugin_timeout", SETTING_NUMBER, AT(plugin_timeout), "60", 1, 86400, NULL, "seconds", false,
          "how long a plug-in in a process may take for a sample before the process is killed" },
        { "slots", SETTING_NUMBER, AT(slots), "4", DLP_SLOTS_MIN, DLP_SLOTS_MAX, NULL, "batches", true,
          "slots of a ring unless the client asks for another number: how far a rank is prepared ahead" },
        { "read_depth", SETTING_NUMBER, AT(read_depth), "64", 1, 1024, NULL, "samples", false,
          "samples under way at once; each has a read buffer of 256 KiB" },
        { "reader", SETTING_CHOICE, AT(reader), "auto", 0, 0, "auto io_uring threads", "", false,
          "how files are read; auto takes io_uring, and threads where that is refused" },
        { "page_cache", SETTING_CHOICE, AT(page_cache), "auto", 0, 0, "auto use bypass", "", false,
          "for packed datasets; auto reads through it what fits into half of the available memory, and past it "
          "what does not" },
        { "outage_timeout", SETTING_NUMBER, AT(outage_timeout), "600", 1, 1000000000, NULL, "seconds", true,
          "how long a job waits for a dataset that cannot be read (a dead mount, a server) before it ends" },
        { "max_pixels", SETTING_COUNT, AT(max_pixels), "178956970", 1, UINT64_C(1) << 36, NULL, "pixels", false,
          "larger pictures are refused by their header, before memory is taken; the default is Pillow's limit" },
        { "max_step_pixels", SETTING_COUNT, AT(max_step_pixels), "268435456", 1, UINT64_C(1) << 40, NULL, "pixels",
          false, "that the steps of a pipeline may make of a sample, together: bounds how long a sample takes" },
        { "max_scans", SETTING_NUMBER, AT(max_scans), "500", 1, 100000, NULL, "scans", false,
          "of a progressive JPEG; ordinary ones have ten, hostile ones thousands" },
        { "decoder", SETTING_CHOICE, AT(decoder), "auto", 0, 0, "auto libjpeg", "", false,
          "which decoder decodes JPEG; auto: our own where it can; libjpeg: libjpeg-turbo for all; the pixels are the same" },
        { "isolation", SETTING_CHOICE, AT(isolation), "threads", 0, 0, "threads process", "", false,
          "where strangers' bytes are decoded; process: in processes without files and network, for each user his own" },
        { "isolation_timeout", SETTING_NUMBER, AT(isolation_timeout), "60", 1, 86400, NULL, "seconds", false,
          "how long such a process may take for a sample before it is killed and the sample is tried again" },
        { "huge_pages", SETTING_CHOICE, AT(huge_pages), "try", 0, 0, "try no", "", false,
          "2 MiB pages for rings; dlctl jobs says what each ring got" },
        { "lock_memory", SETTING_CHOICE, AT(lock_memory), "try", 0, 0, "try no", "", false,
          "lock rings into memory; needs RLIMIT_MEMLOCK or CAP_IPC_LOCK" },
        { "log_level", SETTING_CHOICE, AT(log_level), "info", 0, 0, "error warning info debug", "", true,
          "lines below this level are left out" },
        { "stage_nodes", SETTING_OPTIONAL, AT(stage_nodes), "", 0, 65536, NULL, "hosts", true,
          "hosts on which datasets with an origin are staged, separated by blanks or commas; empty: this node only",
          check_hosts },
        { "stage_network", SETTING_OPTIONAL, AT(stage_network), "", 0, 64, NULL, "CIDR", true,
          "the network in which the nodes talk while staging, such as 10.0.0.0/16; empty: MPI chooses", check_network },
        { "paths", SETTING_FLAG, AT(paths), "no", 0, 0, "yes no", "", true,
          "whether the daemon's own user, and root, may name a dataset by its path instead of a name" },
        { "idle_timeout", SETTING_NUMBER, AT(idle_timeout), "0", 0, 1000000000, NULL, "seconds", true,
          "how long without a connection the daemon waits before it ends; 0 = it does not end" },
};
const size_t N_SETTINGS = ARRAY_SIZE(SETTINGS);

static void *field(const struct setting *setting, const void *fields) {
        return (uint8_t *)(uintptr_t)fields + setting->offset;
}

static bool is_choice(const char *choices, const char *text) {
        size_t n = strlen(text);

        for (const char *choice = choices; *choice; choice += strcspn(choice, " ")) {
                choice += strspn(choice, " ");
                if (n > 0 && strcspn(choice, " ") == n && memcmp(choice, text, n) == 0)
                        return true;
        }
        return false;
}

static bool settings_is_text(const struct setting *setting) {
        switch (setting->kind) {
        case SETTING_TEXT:
        case SETTING_OPTIONAL:
        case SETTING_OCTAL:
        case SETTING_CHOICE:
        case SETTING_SHARE:
                return true;
        default:
                return false;
        }
}

static int parse_text(const struct setting *setting, char **value, const char *text, struct why *why) {
        bool may_be_empty = setting->kind == SETTING_OPTIONAL;
        struct cpu_share share;
        struct nearest nearest;
        struct why reason;
        char *copy;

        if (setting->kind == SETTING_SHARE && cpu_share_parse(text, &share) < 0)
                return why_set(why, -EINVAL,
                               "%s: \"%s\" is not allowed; write percent of one CPU (350), 1%% to 100%% of all CPUs "
                               "(60%%), or 0 for no ceiling",
                               setting->name, text);
        if (setting->kind == SETTING_CHOICE && !is_choice(setting->choices, text))
                return why_set(why, -EINVAL, "%s: \"%s\" is not allowed%s; choose one of: %s", setting->name, text,
                               nearest_in(&nearest, text, strlen(text), setting->choices), setting->choices);
        if (setting->kind == SETTING_OCTAL && (strspn(text, "01234567") != strlen(text) || strlen(text) < 3))
                return why_set(why, -EINVAL, "%s: \"%s\" is not allowed; write permissions such as 0660", setting->name,
                               text);
        if (setting->kind != SETTING_CHOICE && ((!*text && !may_be_empty) || strlen(text) > setting->max))
                return why_set(why, -EINVAL, "%s: \"%s\" is %zu bytes long; %d to %" PRIu64 " are allowed (%s)",
                               setting->name, text, strlen(text), !may_be_empty, setting->max, setting->unit);
        if (setting->check && *text && setting->check(text, &reason) < 0)
                return why_set(why, -EINVAL, "%s: %s", setting->name, reason.text);
        copy = strdup(text);
        if (!copy)
                return why_errno(why, -ENOMEM, "%s", setting->name);
        free(*value);
        *value = copy;
        return 0;
}

static int settings_parse_number(const struct setting *setting, const char *text, uint64_t *ret_value,
                                 struct why *why) {
        char *end;
        unsigned long long value;

        errno = 0;
        value = strtoull(text, &end, 10);
        if (errno || end == text || *end || text[0] < '0' || text[0] > '9' || value < setting->min ||
            value > setting->max)
                return why_set(why, -EINVAL,
                               "%s: \"%s\" is not allowed; write a number from %" PRIu64 " to %" PRIu64 " (%s)",
                               setting->name, text, setting->min, setting->max, setting->unit);
        *ret_value = value;
        return 0;
}

static int settings_parse_size(const struct setting *setting, uint64_t *value, const char *text, struct why *why) {
        uint64_t number;

        if (parse_bytes(text, &number) < 0)
                return why_set(why, -EINVAL, "%s: \"%s\" is not a size; write a number with KiB, MiB or GiB",
                               setting->name, text);
        if (number < setting->min)
                return why_set(why, -EINVAL, "%s: \"%s\" is too small; the minimum is %" PRIu64 " bytes", setting->name,
                               text, setting->min);
        if (number > setting->max)
                return why_set(why, -EINVAL, "%s: \"%s\" is too large; the maximum is %" PRIu64 " bytes", setting->name,
                               text, setting->max);
        *value = number;
        return 0;
}

int setting_parse(const struct setting *setting, void *fields, const char *text, struct why *why) {
        void *value = field(setting, fields);
        uint64_t number = 0;
        int r;

        switch (setting->kind) {
        case SETTING_TEXT:
        case SETTING_OPTIONAL:
        case SETTING_OCTAL:
        case SETTING_CHOICE:
        case SETTING_SHARE:
                return parse_text(setting, value, text, why);
        case SETTING_NUMBER:
        case SETTING_COUNT:
                r = settings_parse_number(setting, text, &number, why);
                if (r == 0)
                        *(uint64_t *)value = number;
                return r;
        case SETTING_SIZE:
                return settings_parse_size(setting, value, text, why);
        case SETTING_FLAG:
                if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
                        return why_set(why, -EINVAL, "%s: \"%s\" is not allowed; choose one of: yes no", setting->name,
                                       text);
                *(bool *)value = text[0] == 'y';
                return 0;
        }
        return -EINVAL;
}

const char *setting_value(const struct setting *setting, const void *fields, char buffer[32]) {
        const void *value = field(setting, fields);

        if (settings_is_text(setting))
                return *(char *const *)value ? *(char *const *)value : "";
        if (setting->kind == SETTING_FLAG)
                return *(const bool *)value ? "yes" : "no";
        snprintf(buffer, 32, "%" PRIu64, *(const uint64_t *)value);
        return buffer;
}

const struct setting *setting_find(const struct setting *rows, size_t n_rows, const char *name) {
        for (size_t i = 0; i < n_rows; i++)
                if (strcmp(rows[i].name, name) == 0)
                        return &rows[i];
        return NULL;
}

static bool is_set(const struct setting *setting, const void *fields) {
        const void *value = field(setting, fields);

        if (settings_is_text(setting))
                return *(char *const *)value != NULL;
        return setting->kind == SETTING_FLAG || *(const uint64_t *)value != 0; /* the default of a flag is "no" */
}

int settings_fill(const struct setting *rows, size_t n_rows, void *fields, struct why *why) {
        for (size_t i = 0; i < n_rows; i++) {
                int r;

                if (!rows[i].initial || is_set(&rows[i], fields))
                        continue;
                r = setting_parse(&rows[i], fields, rows[i].initial, why);
                if (r < 0)
                        return r;
        }
        return 0;
}

void settings_free_texts(const struct setting *rows, size_t n_rows, void *fields) {
        for (size_t i = 0; i < n_rows; i++)
                if (settings_is_text(&rows[i])) {
                        free(*(char **)field(&rows[i], fields));
                        *(char **)field(&rows[i], fields) = NULL;
                }
}

static char *settings_find_index_dir(void) {
        const char *cache = getenv("CACHE_DIRECTORY"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        char *path = NULL;
        int n;

        if (cache && *cache)
                return strndup(cache, strcspn(cache, ":"));
        if (xdg && *xdg)
                n = asprintf(&path, "%s/dataloaderd", xdg);
        else
                n = asprintf(&path, "%s/.cache/dataloaderd", home && *home ? home : "/var");
        return n < 0 ? NULL : path;
}

int settings_complete(struct settings *settings, struct why *why) {
        int r = settings_fill(SETTINGS, N_SETTINGS, settings, why);

        if (r == 0)
                r = admins_parse(settings->admins, &settings->admin_list, why);
        if (r < 0)
                return r;
        if (!settings->index_dir)
                settings->index_dir = settings_find_index_dir();
        return settings->index_dir ? 0 : why_errno(why, -ENOMEM, "index_dir");
}

void settings_make_cache(const struct settings *settings) {
        _cleanup_(freep) char *path = settings_find_index_dir();

        if (!path || strcmp(path, settings->index_dir) != 0)
                return; /* do not create an administrator's folder: it may be missing because its disk is not mounted */
        for (char *end = strchr(path + 1, '/'); end; end = strchr(end + 1, '/')) {
                *end = '\0';
                mkdir(path, 0700); /* the mode of XDG's base directories */
                *end = '/';
        }
}

void settings_fini(struct settings *settings) {
        settings_free_texts(SETTINGS, N_SETTINGS, settings);
        admins_fini(&settings->admin_list);
        for (size_t i = 0; i < settings->n_datasets; i++)
                dataset_setting_fini(&settings->datasets[i]);
        free(settings->datasets);
        *settings = (struct settings){ 0 };
}
