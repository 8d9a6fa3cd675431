/* Any bytes as a folder of shards with an index.json: what is accepted gives an index that opens, whose fields lie
 * within the shard.
 *
 * The first byte: bit 0 takes all the bytes as index.json of a shard that is good; else the first bytes choose the
 * columns, and the rest is the shard, of which bit 1 makes the table right. */
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
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: a shard was accepted %s\n", what);
        abort();
}

static void check_field(const struct source *index, uint64_t sample, uint32_t idx, size_t n_shard) {
        struct extent extent;

        source_locate(index, sample, idx, &extent);
        if (extent.offset > n_shard || extent.length > n_shard - extent.offset)
                find("with a field that leads outside");
}

static void index_folder(const struct format *format, const char *json, size_t n_json, const uint8_t *shard,
                         size_t n_shard) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(source_closep) struct source *index = NULL;
        _cleanup_(closep) int fd = memfd_create("index", MFD_CLOEXEC), root_fd = -1;
        struct why why = { 0 };
        char path[PATH_MAX];

        folder_write("items/s.bin", shard, n_shard);
        folder_write("items/index.json", json, n_json);
        folder_age("items/s.bin");
        folder_age("items/index.json");
        root_fd = open(folder_path("items", path), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root_fd < 0 || fd < 0)
                _exit(2);
        if (format->build(root_fd, &(struct files){ .root = path }, NULL, NULL, &builder, &why) < 0) {
                if (!why.text[0])
                        abort();
                return;
        }
        if (index_builder_write(builder, fd, "fuzzed", &why) < 0)
                find("of which no index can be written");
        if (index_open_fd(fd, "fuzzed", NULL, &index, &why) < 0)
                find("of which no index can be opened");
        for (uint64_t i = 0; i < index->n_samples; i++)
                for (uint32_t k = 0; k < index_n_fields(index); k++)
                        check_field(index, i, k, n_shard);
}

static void put_u32(uint8_t *at, uint32_t value) {
        memcpy(at, &value, sizeof(value));
}

/* The table of `n` items that share what comes after it. */
static void mend(uint8_t *shard, size_t n_shard, uint32_t n) {
        size_t n_table = 4 * ((size_t)n + 2);

        if (n_table > n_shard)
                return;
        put_u32(shard, n);
        for (uint32_t i = 0; i <= n; i++)
                put_u32(shard + 4 * (i + 1), (uint32_t)(n_table + (n_shard - n_table) * i / (n > 0 ? n : 1)));
}

static const struct {
        const char *encoding, *size;
} COLUMNS[] = {
        { "bytes", "null" },          { "int", "8" },     { "str", "null" },
        { "ndarray", "null" },        { "uint8", "1" },   { "ndarray:int16", "null" },
        { "ndarray:uint8:2,3", "6" }, { "jpeg", "null" }, { "str_int", "null" },
};

static void index_mds(struct input *input, uint8_t head) {
        char encodings[256] = "", names[128] = "", sizes[128] = "", json[1024];
        uint32_t n_columns = 1 + input_below(input, 4), n_items = input_below(input, 6);
        size_t n_shard;
        uint8_t *shard;
        int n;

        for (uint32_t i = 0; i < n_columns; i++) {
                uint32_t idx = input_below(input, ARRAY_SIZE(COLUMNS));
                size_t n_encodings = strlen(encodings), n_names = strlen(names), n_sizes = strlen(sizes);

                snprintf(encodings + n_encodings, sizeof(encodings) - n_encodings, "%s\"%s\"", i ? "," : "",
                         COLUMNS[idx].encoding);
                snprintf(names + n_names, sizeof(names) - n_names, "%s\"c%u\"", i ? "," : "", i);
                snprintf(sizes + n_sizes, sizeof(sizes) - n_sizes, "%s%s", i ? "," : "", COLUMNS[idx].size);
        }
        n_shard = input->n;
        shard = malloc(n_shard + 1);
        if (!shard)
                _exit(2);
        memcpy(shard, input->at, n_shard);
        if (head & 2)
                mend(shard, n_shard, n_items);
        n = snprintf(json, sizeof(json),
                     "{\"version\":2,\"shards\":[{\"version\":2,\"format\":\"mds\",\"compression\":null,"
                     "\"column_names\":[%s],\"column_encodings\":[%s],\"column_sizes\":[%s],\"samples\":%u,"
                     "\"raw_data\":{\"basename\":\"s.bin\",\"bytes\":%zu}}]}",
                     names, encodings, sizes, n_items, n_shard);
        index_folder(&FORMAT_MDS, json, (size_t)n, shard, n_shard);
        free(shard);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static const uint8_t SHARD[] = { 2, 0, 0, 0, 16, 0, 0,   0,   22, 0, 0, 0, 27, 0,
                                         0, 0, 2, 0, 0,  0, 'a', 'b', 1,  0, 0, 0, 'c' };
        static bool has_folder;
        struct input input = { .at = data, .n = n_bytes };
        uint8_t head = input_byte(&input);

        if (!has_folder)
                folder_make("items");
        has_folder = true;
        if (head & 1)
                index_folder(&FORMAT_MDS, (const char *)input.at, input.n, SHARD, sizeof(SHARD));
        else
                index_mds(&input, head);
        return 0;
}
