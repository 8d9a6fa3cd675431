#include "daemon/data/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/data/files/globs.h"
#include "daemon/data/files/named.h"
#include "proto/base/cleanup.h"

void files_fini(struct files *files) {
        free(files->memory[0]);
        free(files->memory[1]);
        *files = (struct files){ 0 };
}

static int whole_folder(const char *path, const char *merge, struct files *ret_files, struct why *why) {
        char *root;

        if (merge)
                return why_set(why, -EINVAL,
                               "%s is a folder; with merge, the path names the archives, as in DIR/x-{000..127}.tar",
                               path);
        root = strdup(path);
        if (!root)
                return why_set(why, -ENOMEM, "%s: no memory for its name", path);
        *ret_files = (struct files){ .root = root, .memory = { root } };
        return 0;
}

static int one_file(const char *path, const char *merge, bool is_pipe, bool follows_links, struct files *ret_files,
                    struct why *why) {
        int r;

        if (merge && is_pipe)
                return why_set(why, -EINVAL, "%s is a pipe: nothing can be merged with it", path);
        r = named_find(path, true, merge, follows_links, ret_files, why);
        if (r == 0)
                ret_files->is_pipe = is_pipe;
        return r;
}

/* Is it the beginning of the name of a file with an index of tokens? */
static bool is_prefix(const char *path, char ret_longer[PATH_MAX]) {
        struct stat status;
        int n = snprintf(ret_longer, PATH_MAX, "%s.idx", path);

        return n > 0 && n < PATH_MAX && stat(ret_longer, &status) == 0 && S_ISREG(status.st_mode);
}

int files_find(const char *path, const char *merge, bool follows_links, struct files *ret_files, struct why *why) {
        char longer[PATH_MAX];
        struct stat status;

        if (stat(path, &status) < 0) {
                int error = errno;

                /* A list in braces may be longer than a file name may be, so open() can fail in this way too. */
                if ((error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG) &&
                    (strstr(path, FILES_JOINT) || strpbrk(path, "{" GLOB_CHARACTERS)))
                        return named_find(path, false, merge, follows_links, ret_files, why);
                if (error == ENOENT && is_prefix(path, longer))
                        return one_file(longer, merge, false, follows_links, ret_files, why);
                return why_errno(why, -error, "%s cannot be opened", path);
        }
        if (S_ISDIR(status.st_mode))
                return whole_folder(path, merge, ret_files, why);
        if (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode))
                return one_file(path, merge, S_ISFIFO(status.st_mode), follows_links, ret_files, why);
        return why_set(why, -EINVAL, "%s is neither a folder nor a file", path);
}

int files_check(const struct files *files, int root_fd, struct why *why) {
        for (size_t i = 0; i < files_n_all(files); i++) {
                struct stat status;

                if (beneath_stat(root_fd, files->names[i], &status) < 0)
                        return why_errno(why, -errno, "%s/%s, one of %zu files that the path names", files->root,
                                         files->names[i], files_n_all(files));
                if (S_ISDIR(status.st_mode))
                        return why_set(why, -EINVAL,
                                       "%s/%s is a folder, not a regular file; name its files, as in "
                                       "DIR/x-{000..127}.tar",
                                       files->root, files->names[i]);
                if (!S_ISREG(status.st_mode))
                        return why_set(why, -EINVAL, "%s/%s is not a regular file", files->root, files->names[i]);
        }
        return 0;
}
