/* data/formats/webdataset/shard_list.h: a list of archives as JSON, as wids-index writes it: "shardlist", and that of
 * each of its "datasets", of which each entry has a url and perhaps nsamples and filesize. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/data/files/files.h"
#include "daemon/data/growing.h"
#include "proto/base/why.h"

#define SHARD_LIST_UNKNOWN UINT64_MAX

struct listed_shard {
        uint64_t name;               /* offset into names: relative to the folder of the list, and within it */
        uint64_t n_samples, n_bytes; /* SHARD_LIST_UNKNOWN: the list does not say it */
};

struct shard_list {
        struct growing shards; /* struct listed_shard, in the order of the list */
        struct growing names;
        struct stat status; /* of the list's file, from before it was read */
};

/* Is the path one file that is such a list? The outcomes of is_it(). A read of 4 KiB. */
int shard_list_is_it(int root_fd, const struct files *files);

/* Reads the list. Urls are relative to `root`, the list's folder, or paths within it. Returns 0 or an errno with `why`,
 * which names the file: -EBADMSG where it is damaged, -EINVAL for an archive elsewhere or one that is there twice. The
 * list is to be given back in either case. Blocks for the disk. */
int shard_list_read(struct shard_list *list, int root_fd, const char *root, const char *name, int64_t *settled_ns,
                    struct why *why);

/* Takes a struct of zeroes. */
void shard_list_fini(struct shard_list *list);
