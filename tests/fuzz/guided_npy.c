/* Any bytes as an array of numpy's, and as an archive of them: what is accepted lies within the file, row by row, and
 * its shape is that of its header. */
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

static uint64_t row_bytes_of(const struct schema_field *field) {
        uint64_t n = dlp_dtype_bytes(field->dtype);

        for (uint32_t i = 0; i < field->n_dims; i++)
                n *= (uint64_t)field->shape[i];
        return n;
}

static void check(const struct source *source, size_t n_bytes, bool is_archive) {
        uint64_t last = source->n_samples - 1;
        struct extent extent;

        for (uint32_t i = 0; i < source->schema.n_fields; i++) {
                source_locate(source, last, i, &extent);
                if (source->n_samples == 0 || extent.length != row_bytes_of(&source->schema.fields[i]) ||
                    extent.length == 0)
                        find("with rows of another size than its shape");
                if (extent.offset > n_bytes || extent.length > n_bytes - extent.offset ||
                    (!is_archive && extent.offset + extent.length != n_bytes))
                        find("that ends elsewhere than its file");
                if (source_is_mapped(source, i) && !source_rows_were_there(source, i))
                        find("whose rows are not there");
        }
}

/* The bytes as a file of this name. Returns false if it was refused. */
static bool is_accepted(const char *name, const uint8_t *data, size_t n_bytes, bool is_archive) {
        _cleanup_(source_closep) struct source *source = NULL;
        _cleanup_(closep) int root_fd = -1;
        char root[PATH_MAX], path[PATH_MAX];
        struct why why = { 0 };

        snprintf(path, sizeof(path), "npy/%s", name);
        folder_write(path, data, n_bytes);
        folder_age(path);
        root_fd = open(folder_path("npy", root), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root_fd < 0)
                _exit(2);
        if (format_npy.open(root_fd, &(struct files){ .root = root, .names = &name, .n_names = 1 }, NULL, NULL, NULL,
                            &source, &why) < 0) {
                if (!why.text[0])
                        abort();
                return false;
        }
        check(source, n_bytes, is_archive);
        return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static bool has_folder;
        struct npy_header header;
        struct why why = { 0 };
        int r = npy_header_read(data, n_bytes, true, &header, &why);

        if (r < 0 && !why.text[0])
                abort();
        if (npy_header_read_value(data, n_bytes, &header, &why) < 0 && r == 0)
                find("by its rows only");
        if (!has_folder)
                folder_make("npy");
        has_folder = true;
        if (is_accepted("x.npy", data, n_bytes, false) && r < 0)
                find("whose header was refused");
        is_accepted("x.npz", data, n_bytes, true);
        return 0;
}
