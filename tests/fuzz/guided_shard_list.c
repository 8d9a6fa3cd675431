/* Any bytes as a list of archives: what is accepted names each archive once, and within the list's folder. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/data/formats/webdataset/shard_list.h"
#include "daemon/data/index/index_layout.h"
#include "proto/base/cleanup.h"
#include "tests/fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void check(const struct shard_list *list) {
        const struct listed_shard *shards = (const void *)list->shards.bytes;
        size_t n = list->shards.n_bytes / sizeof(*shards);

        if (n == 0)
                abort();
        for (size_t i = 0; i < n; i++) {
                const char *name = (const char *)list->names.bytes + shards[i].name;

                if (shards[i].name >= list->names.n_bytes || !name[0] || !index_is_inner_path(name)) {
                        fprintf(stderr, "fuzz: an archive was accepted that leads outside\n");
                        abort();
                }
                for (size_t k = 0; k < i && n < 50; k++)
                        if (strcmp(name, (const char *)list->names.bytes + shards[k].name) == 0)
                                abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static const char *const NAMES[] = { "list.json" };
        struct files files = { .root = "/d", .names = NAMES, .n_names = 1 };
        struct shard_list list = { .shards = { 0 } };
        _cleanup_(closep) int root_fd = -1;
        struct why why = { 0 };
        int64_t settled_ns = 0;
        char path[PATH_MAX];
        int r;

        folder_write("list.json", data, n_bytes);
        folder_age("list.json");
        root_fd = open(folder_path("", path), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root_fd < 0)
                _exit(2);
        shard_list_is_it(root_fd, &files);
        r = shard_list_read(&list, root_fd, files.root, NAMES[0], &settled_ns, &why);
        if (r == 0)
                check(&list);
        else if (!why.text[0])
                abort();
        shard_list_fini(&list);
        return 0;
}
