#include "daemon/base/settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/hosts.h"
#include "daemon/base/machine/cpus.h"
#include "proto/base/bytes.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/limits.h"
#include "proto/private.h"

/* ---- further checks ------------------------------------------------------------------------------------------- */

static int check_hosts(const char *text, struct why *why) {
        const char *host;
        size_t n;
        int r;

        do
                r = hosts_next(&text, &host, &n, why);
        while (r > 0);
        return r;
}

static int check_listen(const char *text, struct why *why) {
        char host[HOSTS_HOST_SIZE];
        uint16_t port;
        int r = hosts_next_place(&text, host, &port, why);

        return r > 0 && hosts_next_place(&text, host, &port, why) ? why_set(why, -EINVAL, "must be one ADDRESS:PORT")
                                                                  : r;
}

static int check_peers(const char *text, struct why *why) {
        char host[HOSTS_HOST_SIZE] = "";
        uint16_t port;
        int r;

        if (text[0] == '/')
                return 0;
        do
                r = hosts_next_place(&text, host, &port, why);
        while (r > 0 && host[0]);
        return r > 0 ? why_set(why, -EINVAL, "each node must have a HOST, as in \"node1:7433\"") : r;
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

int setting_check_path(const char *text, struct why *why) {
        return text[0] == '/' ? 0 : why_set(why, -EINVAL, "\"%s\" is not allowed; write an absolute path", text);
}

/* ---- the table ------------------------------------------------------------------------------------------------ */

#define SETTING(key, type, ...)                                                                                        \
        { .name = #key, .kind = SETTING_##type, .offset = offsetof(struct settings, key), __VA_ARGS__ },
const struct setting SETTINGS[N_SETTINGS] = {
#include "daemon/base/settings_rows.h"
};

/* ---- one value ------------------------------------------------------------------------------------------------ */

static void *setting_member(const struct setting *setting, const void *fields) {
        return (uint8_t *)(uintptr_t)fields + setting->offset;
}

static bool setting_is_text(const struct setting *setting) {
        return setting->kind < SETTING_FLAG;
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

static int setting_check_text(const struct setting *setting, const char *text, struct why *why) {
        bool may_be_empty = setting->kind == SETTING_OPTIONAL;
        struct cpu_share share;
        struct nearest nearest;
        struct why reason;

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
                return why_set(why, -EINVAL, "%s: \"%s\" is %zu bytes long; %d to %" PRIu64 " are allowed%s%s%s",
                               setting->name, text, strlen(text), !may_be_empty, setting->max,
                               setting->unit ? " (" : "", setting->unit ? setting->unit : "", setting->unit ? ")" : "");
        if (setting->check && *text && setting->check(text, &reason) < 0)
                return why_set(why, -EINVAL, "%s: %s", setting->name, reason.text);
        return 0;
}

int setting_parse_number(const struct setting *setting, const char *text, uint64_t *ret_value, struct why *why) {
        const char *unit = setting->unit ? setting->unit : "";
        unsigned long long number;
        uint64_t value;
        char *end;

        if (setting->kind == SETTING_SIZE) {
                if (parse_bytes(text, &value) < 0)
                        return why_set(why, -EINVAL,
                                       "%s: \"%s\" is not a size; write a number with KiB, MiB or GiB, such as 4GiB",
                                       setting->name, text);
                if (value < setting->min)
                        return why_set(why, -EINVAL, "%s: \"%s\" is too small; the minimum is %" PRIu64 " bytes",
                                       setting->name, text, setting->min);
                if (value > setting->max)
                        return why_set(why, -EINVAL, "%s: \"%s\" is too large; the maximum is %" PRIu64 " bytes",
                                       setting->name, text, setting->max);
                *ret_value = value;
                return 0;
        }
        errno = 0;
        number = strtoull(text, &end, 10);
        if (errno || end == text || *end || text[0] < '0' || text[0] > '9' || number < setting->min ||
            number > setting->max)
                return why_set(
                        why, -EINVAL, "%s: \"%s\" is not allowed; write a number from %" PRIu64 " to %" PRIu64 "%s%s%s",
                        setting->name, text, setting->min, setting->max, *unit ? " (" : "", unit, *unit ? ")" : "");
        *ret_value = number;
        return 0;
}

int setting_parse(const struct setting *setting, void *fields, const char *text, struct why *why) {
        void *member = fields ? setting_member(setting, fields) : NULL;
        uint64_t number = 0;
        char *copy;
        int r;

        if (setting_is_text(setting)) {
                r = setting_check_text(setting, text, why);
                if (r < 0 || !member)
                        return r;
                copy = strdup(text);
                if (!copy)
                        return why_errno(why, -ENOMEM, "%s", setting->name);
                free(*(char **)member);
                *(char **)member = copy;
                return 0;
        }
        if (setting->kind == SETTING_FLAG) {
                if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
                        return why_set(why, -EINVAL, "%s: \"%s\" is not allowed; choose one of: yes no", setting->name,
                                       text);
                if (member)
                        *(_Atomic bool *)member = text[0] == 'y';
                return 0;
        }
        r = setting_parse_number(setting, text, &number, why);
        if (r == 0 && member)
                *(_Atomic uint64_t *)member = number;
        return r;
}

const char *setting_value(const struct setting *setting, const void *fields, char buffer[32]) {
        const void *member = setting_member(setting, fields);

        if (setting_is_text(setting))
                return *(char *const *)member ? *(char *const *)member : "";
        if (setting->kind == SETTING_FLAG)
                return *(const _Atomic bool *)member ? "yes" : "no";
        snprintf(buffer, 32, "%" PRIu64, *(const _Atomic uint64_t *)member);
        return buffer;
}

const struct setting *setting_find(const struct setting *rows, size_t n_rows, const char *name) {
        for (size_t i = 0; i < n_rows; i++)
                if (strcmp(rows[i].name, name) == 0)
                        return &rows[i];
        return NULL;
}

/* ---- all of them ---------------------------------------------------------------------------------------------- */

static bool setting_is_set(const struct setting *setting, const void *fields) {
        const void *member = setting_member(setting, fields);

        if (setting_is_text(setting))
                return *(char *const *)member != NULL;
        return setting->kind == SETTING_FLAG || *(const _Atomic uint64_t *)member != 0; /* a flag's default is "no" */
}

int settings_fill(const struct setting *rows, size_t n_rows, void *fields, struct why *why) {
        for (size_t i = 0; i < n_rows; i++) {
                int r;

                if (!rows[i].initial || setting_is_set(&rows[i], fields))
                        continue;
                r = setting_parse(&rows[i], fields, rows[i].initial, why);
                if (r < 0)
                        return r;
        }
        return 0;
}

void settings_free_texts(const struct setting *rows, size_t n_rows, void *fields) {
        for (size_t i = 0; i < n_rows; i++)
                if (setting_is_text(&rows[i])) {
                        free(*(char **)setting_member(&rows[i], fields));
                        *(char **)setting_member(&rows[i], fields) = NULL;
                }
}

static char *find_cache(void) {
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
                settings->index_dir = find_cache();
        if (settings->index_dir && !settings->cache_dir &&
            asprintf(&settings->cache_dir, "%s/remote", settings->index_dir) < 0)
                settings->cache_dir = NULL;
        return settings->index_dir && settings->cache_dir ? 0 : why_errno(why, -ENOMEM, "index_dir");
}

void settings_reload(struct settings *settings, struct settings *next,
                     void (*stays)(void *userdata, const struct setting *setting, const char *now, const char *next),
                     void *userdata) {
        struct admins admins = settings->admin_list;

        for (size_t i = 0; i < N_SETTINGS; i++) {
                void *now = setting_member(&SETTINGS[i], settings), *then = setting_member(&SETTINGS[i], next);
                char buffer[32], next_buffer[32], *text;

                if (!SETTINGS[i].reloads) {
                        const char *value = setting_value(&SETTINGS[i], settings, buffer);
                        const char *next_value = setting_value(&SETTINGS[i], next, next_buffer);

                        if (strcmp(value, next_value) != 0)
                                stays(userdata, &SETTINGS[i], value, next_value);
                } else if (setting_is_text(&SETTINGS[i])) {
                        text = *(char **)now;
                        *(char **)now = *(char **)then;
                        *(char **)then = text;
                } else if (SETTINGS[i].kind == SETTING_FLAG) {
                        *(_Atomic bool *)now = *(_Atomic bool *)then;
                } else {
                        *(_Atomic uint64_t *)now = *(_Atomic uint64_t *)then;
                }
        }
        settings->admin_list = next->admin_list;
        next->admin_list = admins;
}

void settings_make_cache(const struct settings *settings) {
        _cleanup_(freep) char *path = find_cache();

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
        *settings = (struct settings){ 0 };
}
