/* Any bytes as an archive, into a folder in memory. Whatever is in it: nothing is written outside of the folder,
 * nothing is left unfinished, and what comes out stays within its limits. The first byte says in what pieces the
 * archive comes. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/fetch/origin/origin_unpack.h"
#include "daemon/store/plan/plan.h"
#include "tests/fuzz/folder.h"

#define LIMIT_BYTES (1u << 20)
#define LIMIT_FILES 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

struct archive {
        const uint8_t *at;
        size_t n, piece;
        uint64_t n_files, n_bytes;
};

static uint64_t n_found, n_found_bytes;

static void find(const char *what) {
        fprintf(stderr, "fuzz: an archive: %s\n", what);
        abort();
}

static ssize_t on_read(void *userdata, uint8_t *into, size_t n) {
        struct archive *archive = userdata;

        n = n < archive->piece ? n : archive->piece;
        n = n < archive->n ? n : archive->n;
        memcpy(into, archive->at, n);
        archive->at += n;
        archive->n -= n;
        return (ssize_t)n;
}

static int on_entry(void *userdata, const struct unpack_entry *entry) {
        struct archive *archive = userdata;

        if (plan_path_check(entry->path, strlen(entry->path), NULL) < 0)
                find("a path that may not be");
        if (entry->link && (entry->link[0] == '/' || !entry->link[0]))
                find("a link that leaves the folder");
        if (!entry->link && !entry->sha256)
                find("a file without a digest");
        archive->n_files++;
        archive->n_bytes += entry->n_bytes;
        return 0;
}

static int look_at_one(const char *path, const struct stat *status, int type, struct FTW *where) {
        if (!S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode) && !S_ISLNK(status->st_mode))
                find("something that is neither file, folder nor link");
        if (status->st_mode & (S_ISUID | S_ISGID) && !S_ISDIR(status->st_mode))
                find("a file that runs as somebody else");
        if (where->level == 1 && strncmp(path + where->base, PLAN_UNFINISHED, strlen(PLAN_UNFINISHED)) == 0)
                find("something unfinished is left");
        n_found++;
        if (S_ISREG(status->st_mode))
                n_found_bytes += status->st_nlink == 1 ? (uint64_t)status->st_size : 0;
        return 0;
}

static void check_outside(void) {
        char path[PATH_MAX];
        size_t n;
        char *text = tree_bytes(folder_path("canary", path), &n);

        if (strcmp(text, "sings") != 0)
                find("a file outside of the folder was changed");
        free(text);
        if (rmdir(folder_path("beside", path)) < 0)
                find("something was written beside the folder");
        folder_make("beside");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static const size_t PIECES[] = { 65536, 1, 511, 512, 4096 };
        struct archive archive = { data + 1, n_bytes - 1, 0, 0, 0 };
        struct unpack_options options = { .archive = "fuzzed",
                                          .limit_bytes = LIMIT_BYTES,
                                          .limit_files = LIMIT_FILES,
                                          .read = on_read,
                                          .entry = on_entry,
                                          .userdata = &archive };
        static bool is_ready;
        struct why why = { 0 };
        char path[PATH_MAX];
        int r;

        if (n_bytes < 1)
                return 0;
        if (!is_ready)
                folder_write("canary", "sings", 5), folder_make("beside");
        is_ready = true;
        archive.piece = PIECES[data[0] % (sizeof(PIECES) / sizeof(PIECES[0]))];
        folder_remove("unpacked");
        folder_make("unpacked");
        options.root_fd = open(folder_path("unpacked", path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = unpack_run(&options, &why);
        close(options.root_fd);
        if (r < 0 && r != -ENOMEM && !why.text[0])
                find("refused without a word");
        n_found = n_found_bytes = 0;
        nftw(path, look_at_one, 16, FTW_PHYS);
        if (n_found_bytes > LIMIT_BYTES || archive.n_bytes > LIMIT_BYTES || archive.n_files > LIMIT_FILES)
                find("more came out than is allowed");
        check_outside();
        return 0;
}
