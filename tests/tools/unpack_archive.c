/* unpack_archive FOLDER [LIMIT_BYTES [LIMIT_FILES [PIECE_BYTES [KEEP]]]]: an archive from stdin into a folder.
 *
 * Prints a line for each entry: size, SHA-256 or "-", path, and after a tab what a link points to. Reads PIECE_BYTES
 * at a time, as a slow origin gives them. With KEEP, files of the right size that are there are left alone. At an error
 * prints its name and text to stderr and ends with 1. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/fetch/origin/origin_unpack.h"

static size_t piece_bytes = 65536;
static int folder;

static ssize_t on_read(void *userdata, uint8_t *into, size_t n) {
        ssize_t got = read(STDIN_FILENO, into, n < piece_bytes ? n : piece_bytes);

        return got < 0 ? -errno : got;
}

static int on_entry(void *userdata, const struct unpack_entry *entry) {
        printf("%llu ", (unsigned long long)entry->n_bytes);
        for (size_t i = 0; entry->sha256 && i < 32; i++)
                printf("%02x", entry->sha256[i]);
        printf("%s %s%s%s\n", entry->sha256 ? "" : "-", entry->path, entry->link ? "\t" : "",
               entry->link ? entry->link : "");
        return 0;
}

static bool is_there(void *userdata, const char *path, uint64_t n_bytes) {
        struct stat stat;

        return fstatat(folder, path, &stat, AT_SYMLINK_NOFOLLOW) == 0 && (uint64_t)stat.st_size == n_bytes;
}

static uint64_t number(int argc, char **argv, int i, uint64_t otherwise) {
        return argc > i ? strtoull(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv) {
        struct unpack_options options = { .archive = "stdin", .read = on_read, .entry = on_entry };
        struct why why = { "" };
        int r;

        if (argc < 2 || (folder = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
                fprintf(stderr, "unpack_archive FOLDER [LIMIT_BYTES [LIMIT_FILES [PIECE_BYTES [KEEP]]]]\n");
                return 64;
        }
        options.root_fd = folder;
        options.limit_bytes = number(argc, argv, 2, UINT64_MAX);
        options.limit_files = number(argc, argv, 3, UINT32_MAX);
        piece_bytes = number(argc, argv, 4, piece_bytes);
        options.is_there = argc > 5 ? is_there : NULL;
        r = unpack_run(&options, &why);
        if (r < 0)
                fprintf(stderr, "%s: %s\n", strerrorname_np(-r), why.text);
        close(folder);
        return r < 0;
}
