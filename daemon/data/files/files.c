#include "daemon/data/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/data/files/braces.h"
#include "daemon/data/index/index_layout.h"
#include "proto/base/cleanup.h"

void files_fini(struct files *files) {
        free(files->memory[0]);
        free(files->memory[1]);
        *files = (struct files){ 0 };
}

static int no_memory(const char *path, struct why *why) {
        return why_set(why, -ENOMEM, "%.200s: no memory for the names of its files", path);
}

static int whole_folder(const char *path, struct files *ret_files, struct why *why) {
        char *root = strdup(path);

        if (!root)
                return no_memory(path, why);
        *ret_files = (struct files){ .root = root, .memory = { root } };
        return 0;
}

/* Takes over the texts: the root and then the names, each with its NUL. */
static int take_texts(const char *path, struct growing *texts, size_t n_names, struct files *ret_files,
                      struct why *why) {
        const char **names = calloc(n_names, sizeof(*names)), *text = (const char *)texts->bytes, *at = text;

        if (!names)
                return no_memory(path, why);
        for (size_t i = 0; i < n_names; i++)
                names[i] = at += strlen(at) + 1;
        *ret_files = (struct files){
                .root = text, .names = names, .n_names = n_names, .memory = { texts->bytes, (void *)names }
        };
        *texts = (struct growing){ 0 };
        return 0;
}

/* Adds the folder part of a path, of which the rest begins at `name`: "/" for "/x", "." for "x". */
static int add_root(struct growing *texts, const char *path, const char *name) {
        size_t n = name > path ? (size_t)(name - path) - (name - path > 1) : 0;
        int r = n > 0 ? growing_append(texts, path, n) : growing_append(texts, ".", 1);

        return r < 0 ? r : growing_append(texts, "", 1);
}

/* "/d/x.tar": the file x.tar in the folder /d. */
static int one_file(const char *path, struct files *ret_files, struct why *why) {
        _cleanup_(growing_fini) struct growing texts = { 0 };
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

        if (add_root(&texts, path, name) < 0 || growing_append(&texts, name, strlen(name) + 1) < 0)
                return no_memory(path, why);
        return take_texts(path, &texts, 1, ret_files, why);
}

/* ---- patterns -------------------------------------------------------------------------------------------------- */

/* "a//b" -> "a/b", "/b" -> "b": an alternative that is part of a folder name may be empty. */
static void join_slashes(char *name) {
        char *to = name;

        for (const char *at = name; *at; at++)
                if (*at != '/' || (to > name && to[-1] != '/'))
                        *to++ = *at;
        *to = '\0';
}

static int check_name(const char *root, const char *name, struct why *why) {
        if (name[0] == '\0' || !index_is_inner_path(name))
                return why_set(why, -EINVAL,
                               "%.150s: the pattern stands for \"%.150s\"; after its first brace it names files, "
                               "without \".\" and \"..\"; parts do so after the folder that they share",
                               root, name);
        if (strlen(root) + 1 + strlen(name) >= PATH_MAX)
                return why_set(why, -ENAMETOOLONG, "%.150s/%.150s...: a path of more than %d bytes", root, name,
                               PATH_MAX - 1);
        return 0;
}

static int by_name(const void *one, const void *other) {
        return strcmp(*(const char *const *)one, *(const char *const *)other);
}

static int check_twice(const char *path, const struct files *files, struct why *why) {
        _cleanup_(freep) const char **sorted = calloc(files->n_names, sizeof(*sorted));

        if (!sorted)
                return no_memory(path, why);
        memcpy(sorted, files->names, files->n_names * sizeof(*sorted));
        qsort(sorted, files->n_names, sizeof(*sorted), by_name);
        for (size_t i = 1; i < files->n_names; i++)
                if (strcmp(sorted[i - 1], sorted[i]) == 0)
                        return why_set(why, -EINVAL, "%.250s: the path names %.150s twice", path, sorted[i]);
        return 0;
}

static int check_names(const char *path, const struct files *files, struct why *why) {
        int r = 0;

        for (size_t i = 0; i < files->n_names && r == 0; i++) {
                join_slashes((char *)(uintptr_t)files->names[i]);
                r = check_name(files->root, files->names[i], why);
        }
        return r == 0 ? check_twice(path, files, why) : r;
}

/* The folder before the first brace of a part, with its slash: its length. */
static size_t folder_length(const char *part) {
        size_t n = strcspn(part, "{");

        while (n > 0 && part[n - 1] != '/')
                n--;
        return n;
}

/* The deepest folder that holds all parts, with its slash: its length in each of them. */
static size_t common_length(const char *const *parts, size_t n_parts) {
        size_t n = folder_length(parts[0]);

        for (size_t i = 1; i < n_parts; i++) {
                size_t n_folder = folder_length(parts[i]), n_same = 0;

                while (n_same < n && n_same < n_folder && parts[i][n_same] == parts[0][n_same])
                        n_same++;
                while (n_same > 0 && parts[0][n_same - 1] != '/')
                        n_same--;
                n = n_same;
        }
        return n;
}

static int find_patterns(const char *path, const char *const *parts, size_t n_parts, struct files *ret_files,
                         struct why *why) {
        _cleanup_(growing_fini) struct growing texts = { 0 };
        _cleanup_(files_fini) struct files files = { 0 };
        size_t n_root = common_length(parts, n_parts), n_names = 0;
        int r;

        if (add_root(&texts, parts[0], parts[0] + n_root) < 0)
                return no_memory(path, why);
        for (size_t i = 0; i < n_parts; i++) {
                r = braces_expand(parts[i] + n_root, &texts, &n_names, why);
                if (r < 0)
                        return r;
        }
        r = take_texts(path, &texts, n_names, &files, why);
        if (r == 0)
                r = check_names(path, &files, why);
        if (r < 0)
                return r;
        *ret_files = files;
        files = (struct files){ 0 };
        return 0;
}

static int find_pattern(const char *path, struct files *ret_files, struct why *why) {
        return find_patterns(path, &path, 1, ret_files, why);
}

/* ---- several parts --------------------------------------------------------------------------------------------- */

static int check_part(const char *path, const char *part, size_t number, struct why *why) {
        if (part[0] == '\0')
                return why_set(why, -EINVAL,
                               "%.300s: part %zu of the path is empty; write " FILES_JOINT " only between two parts",
                               path, number);
        if (part[0] != '/')
                return why_set(why, -EINVAL, "%.250s: part %zu of the path, \"%.150s\", does not begin with /", path,
                               number, part);
        return 0;
}

static int find_parts(const char *path, struct files *ret_files, struct why *why) {
        const size_t n_joint = strlen(FILES_JOINT);
        _cleanup_(freep) char *text = strdup(path);
        _cleanup_(freep) const char **parts = calloc(strlen(path) / n_joint + 1, sizeof(*parts));
        size_t n_parts = 0;

        if (!text || !parts)
                return no_memory(path, why);
        for (char *part = text, *end; part; part = end) {
                int r;

                end = strstr(part, FILES_JOINT);
                if (end) {
                        *end = '\0';
                        end += n_joint;
                }
                r = check_part(path, part, n_parts + 1, why);
                if (r < 0)
                        return r;
                parts[n_parts++] = part;
        }
        return find_patterns(path, parts, n_parts, ret_files, why);
}

/* ---- paths ----------------------------------------------------------------------------------------------------- */

/* Is it the beginning of the name of a file with an index of tokens? */
static bool is_prefix(const char *path, char ret_longer[PATH_MAX]) {
        struct stat status;
        int n = snprintf(ret_longer, PATH_MAX, "%s.idx", path);

        return n > 0 && n < PATH_MAX && stat(ret_longer, &status) == 0 && S_ISREG(status.st_mode);
}

int files_find(const char *path, struct files *ret_files, struct why *why) {
        char longer[PATH_MAX];
        struct stat status;

        if (stat(path, &status) < 0) {
                int error = errno;

                /* A list in braces may be longer than a file name may be, so open() can fail in this way too. */
                if (error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG) {
                        if (strstr(path, FILES_JOINT))
                                return find_parts(path, ret_files, why);
                        if (strchr(path, '{'))
                                return find_pattern(path, ret_files, why);
                }
                if (error == ENOENT && is_prefix(path, longer))
                        return one_file(longer, ret_files, why);
                return why_errno(why, -error, "%.300s cannot be opened", path);
        }
        if (S_ISDIR(status.st_mode))
                return whole_folder(path, ret_files, why);
        if (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode)) {
                int r = one_file(path, ret_files, why);

                ret_files->is_pipe = r == 0 && S_ISFIFO(status.st_mode);
                return r;
        }
        return why_set(why, -EINVAL, "%.300s is neither a folder nor a file", path);
}

int files_check(const struct files *files, int root_fd, struct why *why) {
        for (size_t i = 0; i < files->n_names; i++) {
                struct stat status;

                if (fstatat(root_fd, files->names[i], &status, 0) < 0)
                        return why_errno(why, -errno, "%.200s/%.200s, one of %zu files that the path names",
                                         files->root, files->names[i], files->n_names);
                if (S_ISDIR(status.st_mode))
                        return why_set(why, -EINVAL,
                                       "%.200s/%.200s is a folder, not a regular file; name its files, as in "
                                       "DIR/x-{000..127}.tar",
                                       files->root, files->names[i]);
                if (!S_ISREG(status.st_mode))
                        return why_set(why, -EINVAL, "%.200s/%.200s is not a regular file", files->root,
                                       files->names[i]);
        }
        return 0;
}
