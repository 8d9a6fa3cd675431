#include "client/lib/daemon/daemon_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/path_url.h"

static int daemon_sources_no_memory(struct why *reason) {
        return why_set(reason, -ENOMEM, "no memory for a loader");
}

/* ---- paths ----------------------------------------------------------------------------------------------------- */

/* Absolute, with the home folder for "~". Nothing is resolved. */
static int make_absolute(const char *path, char ret_path[PATH_MAX], struct why *reason) {
        char folder[PATH_MAX];
        const char *home = getenv("HOME"), *rest = path;
        int n;

        if (path[0] == '~' && (path[1] == '/' || !path[1])) {
                if (!home || home[0] != '/')
                        return why_set(reason, -ENOENT, "dataset: %s: HOME is not set; write the whole path", path);
                n = snprintf(ret_path, PATH_MAX, "%s%s", home, path + 1);
        } else if (path[0] == '~') {
                return why_set(reason, -EINVAL, "dataset: %s: only ~/ is understood; write the whole path", path);
        } else if (path[0] == '/') {
                n = snprintf(ret_path, PATH_MAX, "%s", path);
        } else {
                while (strncmp(rest, "./", 2) == 0)
                        rest += 2;
                if (!getcwd(folder, sizeof(folder)))
                        return why_errno(reason, -errno, "dataset: %s: the current folder is not known", path);
                n = snprintf(ret_path, PATH_MAX, "%s/%s", folder, rest);
        }
        if (n >= PATH_MAX)
                return why_set(reason, -ENAMETOOLONG, "dataset: the path %s is longer than %d bytes", path,
                               PATH_MAX - 1);
        return 0;
}

/* The deepest folder of the path that exists, for a message. */
static void find_existing(const char *path, char ret_folder[PATH_MAX]) {
        struct stat status;
        char *slash;

        snprintf(ret_folder, PATH_MAX, "%s", path);
        while ((slash = strrchr(ret_folder, '/')) && slash > ret_folder) {
                *slash = '\0';
                if (stat(ret_folder, &status) == 0)
                        return;
        }
        strcpy(ret_folder, "/");
}

static int no_such_path(const char *path, struct why *reason) {
        char folder[PATH_MAX];

        find_existing(path, folder);
        return why_set(reason, -ENOENT, "dataset: there is no %s; %s exists, and has nothing of that name", path,
                       folder);
}

/* The folder with its links resolved, and the last word as it is: of a link to a file, the name says more than its
 * target, whose ending may be another one. */
static int resolve_folder(const char *path, size_t n_folder, char ret_path[PATH_MAX], struct why *reason) {
        char folder[PATH_MAX], resolved[PATH_MAX];

        snprintf(folder, sizeof(folder), "%.*s", n_folder > 0 ? (int)n_folder : 1, n_folder > 0 ? path : "/");
        if (!realpath(folder, resolved))
                return errno == ENOENT || errno == ENOTDIR ? no_such_path(path, reason)
                                                           : why_errno(reason, -errno, "dataset: %s", folder);
        if (snprintf(ret_path, PATH_MAX, "%s%s", strcmp(resolved, "/") == 0 ? "" : resolved, path + n_folder) >=
            PATH_MAX)
                return why_set(reason, -ENAMETOOLONG, "dataset: the path %s is too long", path);
        return 0;
}

static size_t daemon_sources_folder_length(const char *path, size_t n) {
        while (n > 0 && path[n - 1] != '/')
                n--;
        return n > 0 ? n - 1 : 0;
}

/* A folder or a file that exists. */
static int resolve_existing(const char *path, const struct stat *status, char ret_path[PATH_MAX], struct why *reason) {
        char trimmed[PATH_MAX];
        size_t n = strlen(path);

        if (S_ISDIR(status->st_mode))
                return realpath(path, ret_path) ? 0 : why_errno(reason, -errno, "dataset: %s", path);
        if (!S_ISREG(status->st_mode) && !S_ISFIFO(status->st_mode))
                return why_set(reason, -EINVAL, "dataset: %s is neither a folder nor a file", path);
        while (n > 1 && path[n - 1] == '/')
                n--;
        snprintf(trimmed, sizeof(trimmed), "%.*s", (int)n, path);
        return resolve_folder(trimmed, daemon_sources_folder_length(trimmed, n), ret_path, reason);
}

/* What does not exist under its name: a pattern with braces, or the beginning of a token file's name. */
static int resolve_other(const char *path, char ret_path[PATH_MAX], struct why *reason) {
        size_t n_plain = strcspn(path, "{*?");
        char with_ending[PATH_MAX + 8];
        struct stat status;

        snprintf(with_ending, sizeof(with_ending), "%s.idx", path);
        if (!path[n_plain] && stat(with_ending, &status) < 0)
                return no_such_path(path, reason);
        return resolve_folder(path, daemon_sources_folder_length(path, n_plain), ret_path, reason);
}

static int resolve_one(const char *path, char ret_path[PATH_MAX], struct why *reason) {
        char absolute[PATH_MAX];
        struct stat status;
        int r;

        r = make_absolute(path, absolute, reason);
        if (r < 0)
                return r;
        if (stat(absolute, &status) == 0)
                return resolve_existing(absolute, &status, ret_path, reason);
        if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG) /* a long list in braces */
                return why_errno(reason, -errno, "dataset: %s", absolute);
        return resolve_other(absolute, ret_path, reason);
}

/* A path may have several parts with "::" between them. */
static int daemon_sources_resolve(const char *path, char **ret_path, struct why *reason) {
        _cleanup_(freep) char *copy = strdup(path), *all = NULL;
        char resolved[PATH_MAX];
        struct stat status;
        char *part = copy, *next;

        if (!copy)
                return daemon_sources_no_memory(reason);
        if (path_is_url(path)) { /* nothing of it is here */
                *ret_path = TAKE_PTR(copy);
                return 0;
        }
        for (; part; part = next) {
                char *longer = NULL;
                int r;

                next = part == copy && stat(copy, &status) == 0 ? NULL : strstr(part, "::");
                if (next) {
                        *next = '\0';
                        next += 2;
                }
                r = resolve_one(part, resolved, reason);
                if (r < 0)
                        return r;
                if (asprintf(&longer, "%s%s%s", all ? all : "", all ? "::" : "", resolved) < 0)
                        return daemon_sources_no_memory(reason);
                free(all);
                all = longer;
        }
        *ret_path = TAKE_PTR(all);
        return 0;
}

/* ---- what the daemon is to see, too ---------------------------------------------------------------------------- */

/* NULL: none of it is here. */
static int find_anchor(const char *path, char **ret_anchor, struct why *reason) {
        struct stat status;
        char *anchor;

        *ret_anchor = NULL;
        if (path_is_url(path))
                return 0;
        if (stat(path, &status) == 0)
                anchor = strdup(path);
        else
                anchor = strndup(path, daemon_sources_folder_length(path, strcspn(path, "{*?")));
        if (anchor && !*anchor) {
                free(anchor);
                anchor = strdup("/");
        }
        if (!anchor)
                return daemon_sources_no_memory(reason);
        *ret_anchor = anchor;
        return 0;
}

/* May this process read it? Asked now, because an index that cannot be made takes longer to say so. */
static int check_readable(const char *anchor, const struct stat *status, struct why *reason) {
        int mode = S_ISDIR(status->st_mode) ? R_OK | X_OK : R_OK;

        if (faccessat(AT_FDCWD, anchor, mode, AT_EACCESS) == 0)
                return 0;
        return why_errno(reason, -errno, "dataset: %s cannot be read by user %u", anchor, geteuid());
}

static int daemon_sources_look_at(struct dli_source *source, struct why *reason) {
        struct stat status;
        int r;

        if (!source->anchor)
                return 0;
        if (stat(source->anchor, &status) < 0)
                return errno == ENOENT || errno == ENOTDIR ? no_such_path(source->anchor, reason)
                                                           : why_errno(reason, -errno, "dataset: %s", source->anchor);
        r = check_readable(source->anchor, &status, reason);
        if (r < 0)
                return r;
        source->message.device = status.st_dev;
        source->message.inode = status.st_ino;
        return 0;
}

int dli_sources_look(struct dli_sources *sources, struct why *reason) {
        int r = 0;

        for (size_t i = 0; i < sources->datasets.n && r == 0; i++)
                r = daemon_sources_look_at(&sources->list[i], reason);
        return r;
}

/* ---- the option ------------------------------------------------------------------------------------------------ */

/* Keys that are paths of their own: relative ones are relative to this process. */
static int settle_option(char **option, struct why *reason) {
        static const char *const KEYS[] = { "annotations=", "spool=" };
        char absolute[PATH_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(KEYS); i++) {
                char *longer = NULL;
                int r;

                if (strncmp(*option, KEYS[i], strlen(KEYS[i])) != 0 || !(*option)[strlen(KEYS[i])])
                        continue;
                r = make_absolute(*option + strlen(KEYS[i]), absolute, reason);
                if (r < 0)
                        return r;
                if (asprintf(&longer, "%s%s", KEYS[i], absolute) < 0)
                        return daemon_sources_no_memory(reason);
                free(*option);
                *option = longer;
        }
        return 0;
}

static int daemon_sources_settle(struct dli_dataset *dataset, struct dli_source *source, struct why *reason) {
        Dlp__Source *message = &source->message;
        char *path = NULL;
        int r;

        dlp__source__init(message);
        if (dataset->name) {
                message->name = dataset->name;
                return 0;
        }
        r = daemon_sources_resolve(dataset->path, &path, reason);
        if (r < 0)
                return r;
        free(dataset->path);
        dataset->path = path;
        for (size_t i = 0; i < dataset->n_options && r == 0; i++)
                r = settle_option(&dataset->options[i], reason);
        if (r == 0)
                r = find_anchor(path, &source->anchor, reason);
        if (r < 0)
                return r;
        message->path = path;
        message->options = dataset->options;
        message->n_options = dataset->n_options;
        message->anchor = source->anchor;
        return 0;
}

/* A path with " + " or braces in it needs no quotes if it exists as it is written. */
static int daemon_sources_parse(const char *text, struct dli_datasets *ret_datasets, struct why *reason) {
        char absolute[PATH_MAX];
        struct stat status;

        if (dli_is_path(text) && make_absolute(text, absolute, NULL) == 0 && lstat(absolute, &status) == 0)
                return dli_datasets_of_path(text, ret_datasets, reason);
        return dli_datasets_parse(text, ret_datasets, reason);
}

int dli_sources_make(const char *text, struct dli_sources *ret_sources, struct why *reason) {
        int r;

        *ret_sources = (struct dli_sources){ 0 };
        r = daemon_sources_parse(text, &ret_sources->datasets, reason);
        if (r < 0)
                return r;
        ret_sources->list = calloc(ret_sources->datasets.n, sizeof(*ret_sources->list));
        if (!ret_sources->list)
                return daemon_sources_no_memory(reason);
        for (size_t i = 0; i < ret_sources->datasets.n && r == 0; i++) {
                ret_sources->pointers[i] = &ret_sources->list[i].message;
                r = daemon_sources_settle(&ret_sources->datasets.list[i], &ret_sources->list[i], reason);
        }
        return r < 0 ? r : dli_sources_look(ret_sources, reason);
}

void dli_sources_free(struct dli_sources *sources) {
        for (size_t i = 0; sources->list && i < sources->datasets.n; i++)
                free(sources->list[i].anchor);
        free(sources->list);
        dli_datasets_free(&sources->datasets);
        *sources = (struct dli_sources){ 0 };
}

void dli_sources_hint(const struct dli_sources *sources, int error, struct why *reason) {
        struct why before = *reason;
        struct stat status;

        if (sources->datasets.n == 0 || sources->datasets.has_path)
                return;
        for (size_t i = 0; i < sources->datasets.n; i++) {
                const char *name = sources->datasets.list[i].name;

                if (stat(name, &status) < 0)
                        continue;
                why_set(reason, 0, "There is a %s %s here: if that is meant, write ./%s. As a name: %s",
                        S_ISDIR(status.st_mode) ? "folder" : "file", name, name, before.text);
                return;
        }
        if (error == -ECONNREFUSED)
                why_set(reason, 0,
                        "\"%s\" is a name; a dataset that is named by its path, as in ./%s, needs no configuration. As "
                        "a name: %s",
                        sources->datasets.list[0].name, sources->datasets.list[0].name, before.text);
}
