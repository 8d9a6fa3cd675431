/* Any bytes as an archive, and the index of a folder of it: what is accepted lies within the archive, and the index is
 * one that opens, with the fields and samples that the archive has.
 *
 * The first byte: bit 0 makes the checksums of headers right again, bit 1 gives the archive its end mark. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/data/format.h"
#include "daemon/data/formats/webdataset/tar.h"
#include "daemon/data/index/index.h"
#include "proto/base/cleanup.h"
#include "tests/fuzz/folder.h"

#define BLOCK 512u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: an archive was accepted with %s\n", what);
        abort();
}

/* Every block that is not empty may be a header; of one that is data nobody looks at the bytes. */
static void mend(uint8_t *bytes, size_t n_bytes) {
        for (size_t at = 0; at + BLOCK <= n_bytes; at += BLOCK) {
                uint8_t *block = bytes + at;
                unsigned sum = 0;
                char text[8];

                memset(block + 148, ' ', 8);
                for (size_t i = 0; i < BLOCK; i++)
                        sum += block[i];
                if (sum == 8 * ' ') { /* an end mark stays one */
                        memset(block + 148, 0, 8);
                        continue;
                }
                snprintf(text, sizeof(text), "%06o", sum);
                memcpy(block + 148, text, 7);
        }
}

static void walk(const uint8_t *bytes, size_t n_bytes) {
        _cleanup_(closep) int fd = memfd_create("tar", MFD_CLOEXEC);
        _cleanup_(tar_closep) struct tar *tar = NULL;
        struct tar_member member;
        struct why why = { 0 };
        uint64_t n = 0;
        int r = 0;

        if (fd < 0 || pwrite(fd, bytes, n_bytes, 0) != (ssize_t)n_bytes ||
            (r = tar_open(fd, n_bytes, &tar, &why)) == -ENOMEM)
                _exit(2);
        if (r < 0 && !why.text[0])
                abort();
        if (r < 0)
                return; /* compressed */
        while ((r = tar_next(tar, NULL, &member, &why)) == 0) {
                if (member.offset > n_bytes || member.n_bytes > n_bytes - member.offset)
                        find("a member that leads outside");
                if (strlen(member.name) >= PATH_MAX || ++n > n_bytes / BLOCK)
                        find("an impossible member");
        }
        if (r < 0 && !why.text[0])
                abort();
}

static void index_folder(const uint8_t *bytes, size_t n_bytes) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(source_closep) struct source *index = NULL;
        _cleanup_(closep) int fd = memfd_create("index", MFD_CLOEXEC), root_fd = -1;
        struct why why = { 0 };
        char path[PATH_MAX];

        folder_write("web/s.tar", bytes, n_bytes);
        folder_age("web/s.tar");
        folder_age("web");
        root_fd = open(folder_path("web", path), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root_fd < 0 || fd < 0)
                _exit(2);
        if (format_webdataset.build(root_fd, &(struct files){ .root = path }, NULL, NULL, &builder, &why) < 0) {
                if (!why.text[0])
                        abort();
                return;
        }
        if (index_builder_write(builder, fd, "fuzzed", &why) < 0)
                find("what no index can be written of");
        if (index_open_fd(fd, "fuzzed", NULL, &index, &why) < 0)
                find("what no index can be opened of");
        for (uint64_t i = 0; i < index->n_samples; i++)
                for (uint32_t k = 0; k < index_n_fields(index); k++) {
                        struct extent extent;

                        source_locate(index, i, k, &extent);
                        if (extent.offset > n_bytes || extent.length > n_bytes - extent.offset)
                                find("a field that leads outside");
                }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static bool has_folder;
        size_t n;
        uint8_t *bytes;

        if (!has_folder)
                folder_make("web");
        has_folder = true;
        if (n_bytes < 1)
                return 0;
        n = n_bytes - 1 + (data[0] & 2 ? 3 * BLOCK : 0);
        n = data[0] & 2 ? n / BLOCK * BLOCK : n;
        bytes = calloc(1, n + 1);
        if (!bytes)
                _exit(2);
        memcpy(bytes, data + 1, n_bytes - 1);
        if (data[0] & 1)
                mend(bytes, n);
        walk(bytes, n);
        index_folder(bytes, n);
        free(bytes);
        return 0;
}
