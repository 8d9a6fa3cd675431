#include "daemon/data/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

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

/* "/d/x.tar": the file x.tar in the folder /d. */
static int one_file(const char *path, struct files *ret_files, struct why *why) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        size_t n_root = slash && slash > path ? (size_t)(slash - path) : 1; /* "/x" lies in "/", "x" in "." */
        _cleanup_(freep) char *text = malloc(n_root + 1 + strlen(name) + 1);
        const char **names = calloc(1, sizeof(*names));

        if (!text || !names) {
                free(names);
                return no_memory(path, why);
        }
        memcpy(text, slash ? path : ".", n_root);
        text[n_root] = '\0';
        names[0] = strcpy(text + n_root + 1, name);
        *ret_files = (struct files){ .root = text, .names = names, .n_names = 1, .memory = { text, names } };
        TAKE_PTR(text);
        return 0;
}

int files_find(const char *path, struct files *ret_files, struct why *why) {
        struct stat status;

        if (stat(path, &status) < 0)
                return why_errno(why, -errno, "%.300s cannot be opened", path);
        if (S_ISDIR(status.st_mode))
                return whole_folder(path, ret_files, why);
        if (S_ISREG(status.st_mode))
                return one_file(path, ret_files, why);
        return why_set(why, -EINVAL, "%.300s is neither a folder nor a file", path);
}

int files_check(const struct files *files, int root_fd, struct why *why) {
        for (size_t i = 0; i < files->n_names; i++) {
                struct stat status;

                if (fstatat(root_fd, files->names[i], &status, 0) < 0)
                        return why_errno(why, -errno, "%.200s/%.200s", files->root, files->names[i]);
                if (!S_ISREG(status.st_mode))
                        return why_set(why, -EINVAL, "%.200s/%.200s is not a regular file", files->root,
                                       files->names[i]);
        }
        return 0;
}
