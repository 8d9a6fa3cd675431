/* Any bytes as a folder of shards with an index.json: what is accepted gives an index that opens, whose fields lie
 * within the shard.
 *
 * The first byte: bit 0 takes all the bytes as index.json of a shard that is good; else the first bytes choose the
 * columns, and the rest is the shard, of which bit 1 makes the table right. Bit 2 chooses LitData instead of MDS (whose
 * shards may end with an Arrow table), bit 3 its chunks of tokens, and bit 4 chunks that say that they are, or were,
 * compressed within, with a size that they do not have any more. */
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
        if (extent.flags & EXTENT_ABSENT)
                return;
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
        const char *encoding, *size, *leaf;
} COLUMNS[] = {
        { "bytes", "null", "bytes" },
        { "int", "8", "int" },
        { "str", "null", "str" },
        { "ndarray", "null", "numpy" },
        { "uint8", "1", "bool" },
        { "ndarray:int16", "null", "tensor" },
        { "ndarray:uint8:2,3", "6", "no_header_tensor:16" },
        { "jpeg", "null", "jpeg" },
        { "str_int", "null", "no_header_numpy:4" },
};

struct columns {
        char encodings[256], names[128], sizes[128], leaves[256], spec[1024];
};

/* Adds an element to the text of a list. */
static void append(char *text, size_t size, const char *quote, const char *value) {
        size_t n = strlen(text);

        snprintf(text + n, size - n, "%s%s%s%s", n > 0 ? "," : "", quote, value, quote);
}

static void choose_columns(struct input *input, uint32_t n_columns, struct columns *columns) {
        for (uint32_t i = 0; i < n_columns; i++) {
                uint32_t idx = input_below(input, ARRAY_SIZE(COLUMNS));
                char name[16];

                snprintf(name, sizeof(name), "c%u", i);
                append(columns->encodings, sizeof(columns->encodings), "\"", COLUMNS[idx].encoding);
                append(columns->names, sizeof(columns->names), "\"", name);
                append(columns->sizes, sizeof(columns->sizes), "", COLUMNS[idx].size);
                append(columns->leaves, sizeof(columns->leaves), "\"", COLUMNS[idx].leaf);
                append(columns->spec, sizeof(columns->spec), "",
                       "{\\\"type\\\":null,\\\"context\\\":null,\\\"children_spec\\\":[]}");
        }
}

static void index_shard(struct input *input, uint8_t head) {
        uint32_t n_columns = 1 + input_below(input, 4), n_items = input_below(input, 6);
        struct columns columns = { 0 };
        size_t n_shard;
        uint8_t *shard;
        char json[2048];
        int n;

        choose_columns(input, n_columns, &columns);
        n_shard = input->n;
        shard = malloc(n_shard + 1);
        if (!shard)
                _exit(2);
        memcpy(shard, input->at, n_shard);
        if (head & 2)
                mend(shard, n_shard, n_items);
        if (head & 4)
                n = snprintf(
                        json, sizeof(json),
                        "{\"chunks\":[{\"filename\":\"s.bin\",\"chunk_size\":%u,\"chunk_bytes\":%zu,\"dim\":%s}],"
                        "\"config\":{%s\"data_format\":[%s],\"data_spec\":\"[1,{\\\"type\\\":\\\"builtins.list\\\","
                        "\\\"context\\\":\\\"null\\\",\\\"children_spec\\\":[%s]}]\"}}",
                        n_items, head & 16 ? 1 : n_shard, head & 8 ? "1" : "null",
                        head & 16 ? "\"compression\":\"zstd\",\"compression_level\":\"batch\"," : "", columns.leaves,
                        columns.spec);
        else
                n = snprintf(json, sizeof(json),
                             "{\"version\":2,\"shards\":[{\"version\":2,\"format\":\"mds\",\"compression\":null,"
                             "\"column_names\":[%s],\"column_encodings\":[%s],\"column_sizes\":[%s],\"samples\":%u,"
                             "\"raw_data\":{\"basename\":\"s.bin\",\"bytes\":%zu}}]}",
                             columns.names, columns.encodings, columns.sizes, n_items, n_shard);
        index_folder(head & 4 ? &format_litdata : &format_mds, json, (size_t)n, shard, n_shard);
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
                index_folder(head & 4 ? &format_litdata : &format_mds, (const char *)input.at, input.n, SHARD,
                             sizeof(SHARD));
        else
                index_shard(&input, head);
        return 0;
}
