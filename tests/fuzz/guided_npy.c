/* Any bytes as an array of numpy's: what is accepted lies within the file, row by row, and its digest and shape are
 * those of its header. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/data/format.h"
#include "daemon/data/formats/npy_header.h"
#include "proto/base/cleanup.h"
#include "tests/fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: an array was accepted %s\n", what);
        abort();
}

static void check(const struct source *source, size_t n_bytes) {
        uint64_t last = source->n_samples - 1;
        struct extent extent;
        uint64_t row_bytes = dlp_dtype_bytes(source->schema.fields[0].dtype);

        for (uint32_t i = 0; i < source->schema.fields[0].n_dims; i++)
                row_bytes *= (uint64_t)source->schema.fields[0].shape[i];
        source_locate(source, last, 0, &extent);
        if (source->n_samples == 0 || extent.length != row_bytes || row_bytes == 0)
                find("with rows of another size than its shape");
        if (extent.offset + extent.length != n_bytes)
                find("that ends elsewhere than its file");
        if (source_row(source, last, 0) && !source_rows_were_there(source, 0))
                find("whose rows are not there");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        _cleanup_(source_closep) struct source *source = NULL;
        _cleanup_(closep) int root_fd = -1;
        static const char *const NAMES[] = { "x.npy" };
        static bool has_folder;
        struct npy_header header;
        struct why why = { 0 }, again = { 0 };
        char path[PATH_MAX];
        int r = npy_header_read(data, n_bytes, &header, &why);

        if (r < 0 && !why.text[0])
                abort();
        if (!has_folder)
                folder_make("npy");
        has_folder = true;
        folder_write("npy/x.npy", data, n_bytes);
        folder_age("npy/x.npy");
        root_fd = open(folder_path("npy", path), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root_fd < 0)
                _exit(2);
        if (FORMAT_NPY.open(root_fd, &(struct files){ .root = path, .names = NAMES, .n_names = 1 }, &source, &again) <
            0) {
                if (!again.text[0])
                        abort();
                return 0;
        }
        if (r < 0)
                find("whose header was refused");
        check(source, n_bytes);
        return 0;
}
