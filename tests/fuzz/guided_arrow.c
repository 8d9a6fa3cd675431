/* Any bytes as an Arrow file, and the index of a dataset of it: what is accepted lies within the file, and the index is
 * one that opens. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/data/format.h"
#include "daemon/data/index/index.h"
#include "proto/base/cleanup.h"
#include "tests/fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: an Arrow file was accepted %s\n", what);
        abort();
}

static void check(const struct source *index, size_t n_bytes) {
        uint8_t value[64];

        for (uint64_t i = 0; i < index->n_samples; i++)
                for (uint32_t k = 0; k < index->schema.n_fields; k++) {
                        const struct schema_field *field = &index->schema.fields[k];
                        struct extent extent;

                        if (field->kind == FIELD_NAME)
                                continue;
                        if (!field->is_stored) {
                                if (source_has(index, i, k) && source_length(index, i, k) <= sizeof(value))
                                        source_value(index, i, k, value);
                                continue;
                        }
                        source_locate(index, i, k, &extent);
                        if (extent.flags & EXTENT_ABSENT || !extent.shard)
                                continue;
                        if (extent.offset > n_bytes || extent.length > n_bytes - extent.offset)
                                find("with a value that leads outside");
                        if (field->kind == FIELD_VALUE && extent.length % dlp_dtype_bytes(field->dtype) != 0)
                                find("with half an element");
                }
}

/* The index of a folder, of which all files are n_bytes long at most. */
static void index_folder(const char *name, size_t n_bytes) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(source_closep) struct source *index = NULL;
        _cleanup_(closep) int fd = memfd_create("index", MFD_CLOEXEC), root_fd = -1;
        struct why why = { 0 };
        char path[PATH_MAX];

        folder_age(name);
        root_fd = open(folder_path(name, path), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root_fd < 0 || fd < 0)
                _exit(2);
        if (format_arrow.build(root_fd, &(struct files){ .root = path }, NULL, NULL, &builder, &why) < 0) {
                if (!why.text[0])
                        abort();
                return;
        }
        if (index_builder_write(builder, fd, "fuzzed", &why) < 0)
                find("of which no index can be written");
        if (index_open_fd(fd, "fuzzed", NULL, &index, &why) < 0)
                find("of which no index can be opened");
        check(index, n_bytes);
}

/* A dataset of good rows, whose indices file is the input. */
static size_t make_ordered(void) {
        static const char STATE[] = "{\"_data_files\": [{\"filename\": \"rows.arrow\"}], "
                                    "\"_indices_data_files\": [{\"filename\": \"x.arrow\"}]}";
        size_t n = 0;
        char *rows = tree_bytes("tests/vectors/arrow_indices/selected/dataset.arrow", &n);

        folder_make("ordered");
        folder_write("ordered/state.json", STATE, sizeof(STATE) - 1);
        folder_write("ordered/rows.arrow", rows, n);
        folder_age("ordered/rows.arrow");
        free(rows);
        return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static size_t n_rows_bytes;

        if (n_rows_bytes == 0) {
                folder_make("arrow");
                n_rows_bytes = make_ordered();
        }
        folder_write("arrow/x.arrow", data, n_bytes);
        folder_age("arrow/x.arrow");
        index_folder("arrow", n_bytes);
        folder_write("ordered/x.arrow", data, n_bytes);
        folder_age("ordered/x.arrow");
        index_folder("ordered", n_rows_bytes);
        return 0;
}
