#include "tests/support/tree.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/temporary.h"

static void must(int result, const char *what) {
        if (result < 0)
                ck_abort_msg("%s: %s", what, strerror(errno));
}

void tree_make(struct tree *tree) {
        temporary_folder(tree->root, sizeof(tree->root));
        must(chmod(tree->root, 0755), tree->root);
        tree->fd = open(tree->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        must(tree->fd, tree->root);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where) {
        (void)status, (void)type, (void)where;
        return remove(path);
}

void tree_remove(struct tree *tree) {
        close(tree->fd);
        must(nftw(tree->root, remove_one, 32, FTW_DEPTH | FTW_PHYS), tree->root);
}

static void make_parents(const struct tree *tree, const char *path) {
        char parent[PATH_MAX];

        for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
                snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
                if (mkdirat(tree->fd, parent, 0755) < 0 && errno != EEXIST)
                        must(-1, parent);
        }
}

void tree_dir(const struct tree *tree, const char *path) {
        make_parents(tree, path);
        must(mkdirat(tree->fd, path, 0755), path);
}

void tree_file(const struct tree *tree, const char *path, const char *text) {
        int fd;

        make_parents(tree, path);
        fd = openat(tree->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        must(fd, path);
        ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        close(fd);
}

void tree_link(const struct tree *tree, const char *path, const char *target) {
        make_parents(tree, path);
        must(symlinkat(target, tree->fd, path), path);
}

void tree_fifo(const struct tree *tree, const char *path) {
        make_parents(tree, path);
        must(mkfifoat(tree->fd, path, 0644), path);
}

void tree_age(const struct tree *tree, const char *path) {
        struct timespec times[2];

        clock_gettime(CLOCK_REALTIME, &times[1]);
        times[1].tv_sec -= 3600;
        times[0] = times[1];
        must(utimensat(tree->fd, path, times, 0), path);
}
