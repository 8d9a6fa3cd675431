#include "daemon/data/formats/items/litdata_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/data/files/listed.h"
#include "daemon/data/formats/arrow/host.h"
#include "proto/base/cleanup.h"

#define MAGIC   "LDARW01" /* with its zero */
#define N_MAGIC 8u
#define N_END   (4u + N_MAGIC)

/* Positive outcome: there is no table. */
#define NO_TABLE 1

static int litdata_rows_find_end(int fd, uint64_t n_bytes, uint64_t *ret_begin_byte, uint64_t *ret_n_bytes,
                                 struct why *why) {
        uint8_t end[N_END];
        uint64_t n_table;
        int r;

        if (n_bytes < N_END)
                return NO_TABLE;
        r = listed_read(fd, end, N_END, n_bytes - N_END, why);
        if (r < 0)
                return r;
        if (memcmp(end + 4, MAGIC, N_MAGIC) != 0)
                return NO_TABLE;
        n_table = le32(end);
        if (n_table == 0 || n_table > n_bytes - N_END)
                return why_set(why, -EBADMSG,
                               "its rows are said to take %" PRIu64 " bytes, and it has %" PRIu64 "; copy it again",
                               n_table, n_bytes);
        *ret_begin_byte = n_bytes - N_END - n_table;
        *ret_n_bytes = n_table;
        return 0;
}

static int find_table(int fd, uint64_t n_bytes, uint64_t *ret_begin_byte, uint64_t *ret_n_bytes, struct why *why) {
        int r = litdata_rows_find_end(fd, n_bytes, ret_begin_byte, ret_n_bytes, why);

        return r == NO_TABLE
                       ? why_set(why, -EBADMSG, "has no rows at its end, as the first chunk has; copy the files again")
                       : r;
}

int litdata_has_rows(int root_fd, const char *root, const char *name, int64_t *settled_ns, struct why *why) {
        _cleanup_(closep) int fd = -1;
        uint64_t begin_byte, n_bytes;
        struct stat status;
        struct why detail;
        int r;

        fd = listed_open(root_fd, root, name, settled_ns, &status, why);
        if (fd < 0)
                return fd;
        r = litdata_rows_find_end(fd, (uint64_t)status.st_size, &begin_byte, &n_bytes, &detail);
        return r < 0 ? why_set(why, r, "%s/%s: %s", root, name, detail.text) : r == 0;
}

int litdata_rows_build(const struct item_set *set, int root_fd, const struct files *files, const char *fields,
                       struct refusals *refusals, const struct index_watch *watch, struct index_builder **ret_builder,
                       struct why *why) {
        const struct item_shard *shards = (const void *)set->shards.bytes;
        uint64_t n_files = set->shards.n_bytes / sizeof(*shards);
        _cleanup_(freep) uint64_t *n_rows = calloc(n_files, sizeof(*n_rows));
        const struct arrow_host host = {
                .format = set->format,
                .fields = fields,
                .refusals = refusals,
                .list = "index.json",
                .folder = set->folder,
                .list_status = set->index_status,
                .settled_ns = set->settled_ns,
                .names = (const char *)set->names.bytes,
                .n_name_bytes = set->names.n_bytes,
                .n_files = n_files,
                .n_rows = n_rows,
                .find_table = find_table,
        };

        if (!n_rows)
                return why_errno(why, -ENOMEM, "%s: its index", files->root);
        for (uint64_t i = 0; i < n_files; i++)
                n_rows[i] = shards[i].n_items;
        return arrow_host_build(&host, root_fd, files, watch, ret_builder, why);
}
