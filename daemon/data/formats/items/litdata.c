#include "daemon/base/machine/beneath.h"
#include "daemon/data/format.h"

/* litdata: the folder that LitData's optimize() or StreamingDataset writer made: index.json and chunks. The leaves of
 * an item are the fields; their names are the keys of dictionaries, and the places in tuples and lists.
 *
 * Items of text and numbers alone may be rows of Arrow tables at the ends of the chunks (litdata_rows.h).
 *
 * Chunks of tokens (TokensLoader) are arrays without any header. An item is a document; with block_size = N, samples
 * are blocks of N tokens as TokensLoader cuts them: from each chunk, whole blocks only. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/data/files/listed.h"
#include "daemon/data/format_options.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/formats/items/index_json.h"
#include "daemon/data/formats/items/items.h"
#include "daemon/data/formats/items/litdata_convert.h"
#include "daemon/data/formats/items/litdata_leaves.h"
#include "daemon/data/formats/items/litdata_rows.h"
#include "proto/base/cleanup.h"

#define BATCHES    "LDFZ" /* the begin of a chunk whose items are compressed in batches, of any version */
#define ZSTD_MAGIC 0xfd2fb528u
#define ADVICE     "stage them with prepare = \"convert\", which decompresses them, or write them without it"

struct reading {
        struct item_set set;
        const struct format_options *options;
        int root_fd;
        const char *root;
        bool has_rows; /* the chunks hold Arrow tables */
        uint64_t n_chunks, n_flat;
        uint64_t n_unpacked; /* chunks that lie decompressed beside their compressed files, or in their place */
};

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

/* "chunk-0-0.zstd.bin", or "chunk-0-0.zstd:9.bin", is compressed as a whole; LitData, and prepare = "convert",
 * decompress it into "chunk-0-0.bin". */
static void find_unpacked(struct reading *reading, char *name) {
        static const char PACKED[] = ".zstd", PLAIN[] = ".bin";
        size_t n = strlen(name), n_packed = sizeof(PACKED) - 1, n_plain = sizeof(PLAIN) - 1;
        const char *dot = n > n_plain ? memrchr(name, '.', n - n_plain) : NULL;
        char plain[PATH_MAX];
        struct stat status;

        if (!dot || strcmp(name + n - n_plain, PLAIN) != 0 || strncmp(dot, PACKED, n_packed) != 0 ||
            (dot[n_packed] != '.' && dot[n_packed] != ':') || !index_is_inner_path(name))
                return;
        snprintf(plain, sizeof(plain), "%.*s%s", (int)(dot - name), name, PLAIN);
        if (beneath_stat(reading->root_fd, plain, &status) < 0)
                return;
        strcpy(name, plain);
        reading->n_unpacked++;
}

static int take_chunk(void *userdata, const struct json_token *chunk, struct why *why) {
        struct reading *reading = userdata;
        int64_t n_items = 0, n_bytes = 0;
        struct json_token dim;
        char name[PATH_MAX];
        int r = index_json_text(chunk, "filename", name, sizeof(name), why);

        if (r == 0)
                r = index_json_number(chunk, "chunk_size", &n_items, why);
        if (r == 0)
                r = index_json_number(chunk, "chunk_bytes", &n_bytes, why);
        if (r == 0)
                find_unpacked(reading, name);
        if (r == 0)
                r = item_set_add_shard(&reading->set, name, n_items, n_bytes, why);
        if (r < 0) {
                struct why detail = *why;

                return why_set(why, r, "chunk %" PRIu64 ": %s", reading->n_chunks, detail.text);
        }
        reading->n_flat += index_json_member(chunk, "dim", &dim, NULL) == 0;
        reading->n_chunks++;
        return 0;
}

/* Is the chunk still compressed? Batches of items have a magic, and an item that is compressed by itself begins with
 * that of zstd, where others have the size of their first leaf. */
static int check_is_plain(int fd, uint64_t n_bytes, struct why *why) {
        uint8_t head[12], item[4];
        uint64_t begin, end;
        int r = n_bytes < sizeof(head) ? 0 : listed_read(fd, head, sizeof(head), 0, why);

        if (r < 0 || n_bytes < sizeof(head))
                return r; /* too short for anything, which is found later */
        if (memcmp(head, BATCHES, strlen(BATCHES)) == 0)
                return why_set(why, -ENOTSUP,
                               "batches of its items have compression: no item can be read by itself; %s", ADVICE);
        begin = le32(head + 4);
        end = le32(head + 8);
        if (begin + sizeof(item) > end || end > n_bytes)
                return 0;
        r = listed_read(fd, item, sizeof(item), begin, why);
        if (r < 0)
                return r;
        if (le32(item) == ZSTD_MAGIC && end - begin < ZSTD_MAGIC)
                return why_set(why, -ENOTSUP, "its items have compression: they cannot be read as they are; %s",
                               ADVICE);
        return 0;
}

static bool litdata_is_text(const struct json_token *value, const char *text) {
        return value->kind == JSON_STRING && json_string_is(value, text, strlen(text));
}

/* Chunks that are compressed as a whole are known by their names. Of others only the content tells what staging
 * has decompressed, because names and index.json stay the same. */
static int check_compression(struct reading *reading, const struct json_token *whole, struct why *why) {
        struct json_token level;
        int r = index_json_member(whole, "config.compression", &level, why);

        if (r != 0 || (reading->n_unpacked > 0 && reading->n_unpacked == reading->n_chunks))
                return r < 0 ? r : 0;
        r = index_json_member(whole, "config.compression_level", &level, why);
        if (r < 0)
                return r;
        if (r == JSON_ABSENT)
                return why_set(why, -ENOTSUP, "the chunks have compression: no item can be read by itself; %s", ADVICE);
        if (!litdata_is_text(&level, "batch") && !litdata_is_text(&level, "sample"))
                return why_set(
                        why, -ENOTSUP,
                        "the chunks have a \"compression_level\" that is not known; write them without compression");
        reading->set.is_resized = true;
        reading->set.check = check_is_plain;
        return 0;
}

/* What makes the bytes of items unreadable by themselves. An Arrow table says itself how it is compressed. */
static int check_config(struct reading *reading, const struct json_token *whole, struct why *why) {
        static const char *const PATHS[] = { "config.encryption", "config.ipc_compression" };
        struct json_token value;
        int r = check_compression(reading, whole, why);

        for (size_t i = 0; i < ARRAY_SIZE(PATHS) - reading->has_rows && r == 0; i++) {
                r = index_json_member(whole, PATHS[i], &value, why);
                if (r == 0)
                        return why_set(why, -ENOTSUP,
                                       "the chunks have %s: no item can be read by itself; write them without it",
                                       PATHS[i] + strlen("config."));
                r = r < 0 ? r : 0;
        }
        return r;
}

/* The first chunk tells, if it can be read at all: what chunks are compressed or encrypted has been refused. */
static int look_for_rows(struct reading *reading, struct why *why) {
        const struct item_shard *shards = (const void *)reading->set.shards.bytes;
        int r;

        if (reading->n_chunks == 0)
                return 0;
        r = litdata_has_rows(reading->root_fd, reading->root, (const char *)reading->set.names.bytes + shards[0].name,
                             &reading->set.settled_ns, why);
        reading->has_rows = r > 0;
        return r < 0 ? r : 0;
}

/* Chunks of tokens: arrays of one dimension, one after the other. */
static int check_flat(struct reading *reading, struct why *why) {
        struct item_set *set = &reading->set;
        uint64_t block_size = format_option_number(reading->options, "block_size", 0);

        if (reading->n_flat == 0)
                return block_size == 0
                               ? 0
                               : why_set(why, -EINVAL, "block_size is for chunks of tokens, which these are not");
        if (reading->n_flat != reading->n_chunks || set->places.n_bytes != sizeof(struct item_place) ||
            (!set->columns[0].refused[0] &&
             (set->columns[0].field.kind != FIELD_VALUE || set->columns[0].field.n_dims != 1)))
                return why_set(why, -ENOTSUP,
                               "some chunks hold tokens (\"dim\"), but not all, or their items are not arrays");
        set->is_bare = true;
        strcpy(set->columns[0].field.name, "tokens");
        if (block_size > 0)
                set->columns[0].field.shape[0] = (int64_t)block_size;
        set->n_block_bytes = block_size * dlp_dtype_bytes(set->columns[0].field.dtype);
        return 0;
}

/* ---- the format -------------------------------------------------------------------------------------------------- */

static int refuse_leaf(const struct item_column *leaf, struct why *why) {
        return why_set(why, -ENOTSUP,
                       "the leaf %s of an item is stored as \"%s\", which cannot be served%s; store it in another way",
                       leaf->field.name, leaf->refused,
                       strncmp(leaf->refused, "pickle", 6) == 0 ? ": pickled objects run code when they are read" : "");
}

/* The leaves of an item, unless a table says what they are. */
static int read_leaves(struct reading *reading, const struct json_token *whole, struct why *why) {
        const char *fields = format_option(reading->options, "fields");
        const struct item_column *refused;
        int r = reading->has_rows ? 0 : litdata_leaves_read(&reading->set, whole, fields, why);

        if (r == 0)
                r = check_flat(reading, why);
        while (r == 0 && (refused = item_set_choose(&reading->set, fields)))
                r = refusals_add(reading->set.refusals, refused->field.name, refuse_leaf(refused, why), why);
        return r;
}

static int litdata_read_index(struct reading *reading, const struct index_json *json, struct why *why) {
        struct json_token whole = { .bytes = json->bytes, .n_bytes = json->n_bytes };
        struct why detail = { 0 };
        int r = index_json_each(&whole, "chunks", take_chunk, reading, &detail);

        if (r == 0) {
                r = look_for_rows(reading, why);
                if (r < 0)
                        return r;
                r = check_config(reading, &whole, &detail);
        }
        if (r == 0)
                r = read_leaves(reading, &whole, &detail);
        if (r < 0)
                return why_set(why, r, "%s/index.json: %s", reading->root, detail.text);
        if (reading->n_chunks == 0 || (reading->set.n_columns == 0 && !reading->has_rows))
                return why_set(why, -ENOENT, "%s/index.json: names no chunk, or no leaf of an item", reading->root);
        return 0;
}

static int litdata_build(int root_fd, const struct files *files, const struct format_options *options,
                         const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        struct reading *reading = calloc(1, sizeof(*reading));
        struct index_json json = { 0 };
        int r;

        if (!reading)
                return index_builder_refused(-ENOMEM, files->root, why);
        *reading = (struct reading){
                .set = { .format = format_litdata.name, .item = "item", .refusals = format_refusals(options) },
                .options = options,
                .root_fd = root_fd,
                .root = files->root
        };
        r = beneath_stat(root_fd, ".", &reading->set.folder) < 0 ? why_errno(why, -errno, "%s", files->root) : 0;
        if (r == 0)
                r = index_json_read(&json, root_fd, files->root, &reading->set.settled_ns, why);
        if (r == 0)
                r = litdata_read_index(reading, &json, why);
        reading->set.index_status = json.status;
        index_json_fini(&json);
        if (r == 0 && reading->has_rows)
                r = litdata_rows_build(&reading->set, root_fd, files, format_option(options, "fields"),
                                       format_refusals(options), watch, ret_builder, why);
        else if (r == 0)
                r = items_build(&reading->set, root_fd, files->root, watch, ret_builder, why);
        item_set_fini(&reading->set);
        free(reading);
        return r;
}

static int litdata_is_it(int root_fd, const struct files *files) {
        struct index_json json = { 0 };
        struct json_token whole, chunks, config;
        int64_t settled_ns = 0;
        int r;

        if (files->n_names > 0)
                return 0;
        r = index_json_read(&json, root_fd, files->root, &settled_ns, NULL);
        if (r == 0) {
                whole = (struct json_token){ .bytes = json.bytes, .n_bytes = json.n_bytes };
                r = index_json_member(&whole, "chunks", &chunks, NULL) == 0 &&
                    index_json_member(&whole, "config.data_format", &config, NULL) == 0;
        }
        index_json_fini(&json);
        return r < 0 ? format_cannot_tell(r) : r;
}

static const struct setting OPTIONS[] = {
        { .name = "block_size",
          .kind = SETTING_NUMBER,
          .min = 1,
          .max = 1u << 30,
          .unit = "tokens",
          .prose =
                  "Of chunks of tokens: the tokens in each sample, which is then a block; empty: samples are documents." },
        OPTION_FIELDS,
        { 0 },
};

const struct format format_litdata = {
        .name = "litdata",
        .doc = "A folder with `index.json` and chunks, as LitData writes them. The leaves of an item are the "
               "fields; a sample is called CHUNK:N.",
        .example = "path = \"/data/tokens\" block_size = 2049",
        .options = OPTIONS,
        .conversions = LITDATA_CONVERSIONS,
        .converts = "compressed chunks of LitData (.zstd.bin, chunk-*.bin)",
        .is_it = litdata_is_it,
        .build = litdata_build,
};
