/* make_tree DIR FILES CLASSES: FILES empty files named like ImageNet's in CLASSES class folders, as fast as it goes.
 *
 * For measuring what a large folder costs. DIR must exist and be empty. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *what) {
        fprintf(stderr, "make_tree: %s: %s\n", what, strerror(errno));
        return EXIT_FAILURE;
}

int main(int argc, char **argv) {
        unsigned long n_files, n_classes;

        if (argc != 4) {
                fprintf(stderr, "usage: make_tree DIR FILES CLASSES\n");
                return 2;
        }
        n_files = strtoul(argv[2], NULL, 10);
        n_classes = strtoul(argv[3], NULL, 10);
        if (n_classes == 0 || chdir(argv[1]) < 0)
                return fail(argv[1]);

        for (unsigned long idx_class = 0; idx_class < n_classes; idx_class++) {
                unsigned long n_here = n_files / n_classes + (idx_class < n_files % n_classes);
                char name[64];
                int dir, fd;

                snprintf(name, sizeof(name), "n%08lu", idx_class);
                if (mkdir(name, 0755) < 0)
                        return fail(name);
                dir = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (dir < 0)
                        return fail(name);
                for (unsigned long i = 0; i < n_here; i++) {
                        snprintf(name, sizeof(name), "n%08lu_%lu.JPEG", idx_class, i);
                        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
                        if (fd < 0)
                                return fail(name);
                        close(fd);
                }
                close(dir);
        }
        return EXIT_SUCCESS;
}
