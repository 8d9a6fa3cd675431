/* Any bytes as a Parquet file, and the index of a dataset of it: what is accepted lies within the file, and the index
 * is one that opens. A few bytes may stand for many equal rows, so it is ended after some thousands. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/data/files/parted.h"
#include "daemon/data/format.h"
#include "daemon/data/index/index.h"
#include "proto/base/cleanup.h"
#include "tests/fuzz/folder.h"

#define ROWS_MAX 20000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: a Parquet file was accepted %s\n", what);
        abort();
}

static void count(void *userdata, uint64_t n_rows) {
        if (n_rows > ROWS_MAX)
                atomic_store((atomic_bool *)userdata, true);
}

static void check_value(const struct source *index, uint64_t sample, uint32_t field) {
        _cleanup_(freep) uint8_t *value = malloc(source_length(index, sample, field) + 1);

        if (!value)
                _exit(2);
        source_value(index, sample, field, value);
        if (index->schema.fields[field].dtype == DLP_DTYPE_BOOL && index->schema.fields[field].kind == FIELD_VALUE &&
            source_has(index, sample, field) && source_length(index, sample, field) > 0 && value[0] > 1)
                find("with a bool that is neither");
}

static void check(const struct source *index, size_t n_bytes) {
        for (uint64_t i = 0; i < index->n_samples; i++)
                for (uint32_t k = 0; k < index->schema.n_fields; k++) {
                        struct extent extent;

                        if (index->schema.fields[k].kind == FIELD_NAME)
                                continue;
                        if (!index->schema.fields[k].is_stored) {
                                check_value(index, i, k);
                                continue;
                        }
                        source_locate(index, i, k, &extent);
                        if (extent.flags & EXTENT_ABSENT || !extent.shard)
                                continue;
                        if (extent.offset > n_bytes || extent.length > n_bytes - extent.offset)
                                find("with a value that leads outside");
                }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(source_closep) struct source *index = NULL;
        _cleanup_(closep) int fd = memfd_create("index", MFD_CLOEXEC), root_fd = -1;
        atomic_bool cancel = false;
        const struct index_watch watch = { .progress = count, .userdata = &cancel, .cancel = &cancel };
        static bool has_folder;
        struct why why = { 0 };
        char path[PATH_MAX];

        if (!has_folder)
                folder_make("parquet");
        has_folder = true;
        folder_write("parquet/x.parquet", data, n_bytes);
        folder_age("parquet/x.parquet");
        folder_age("parquet");
        root_fd = open(folder_path("parquet", path), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root_fd < 0 || fd < 0)
                _exit(2);
        /* Mostly by one thread: starting others takes longer than a small file. */
        CUTS_LIMITS.n_threads = n_bytes % 8 == 0 ? 2 : 1;
        CUTS_LIMITS.is_patient = true;
        if (format_parquet.build(root_fd, &(struct files){ .root = path }, NULL, &watch, &builder, &why) < 0) {
                if (!why.text[0])
                        abort();
                return 0;
        }
        if (index_builder_write(builder, fd, "fuzzed", &why) < 0)
                find("of which no index can be written");
        if (index_open_fd(fd, "fuzzed", NULL, &index, &why) < 0)
                find("of which no index can be opened");
        check(index, n_bytes);
        return 0;
}
