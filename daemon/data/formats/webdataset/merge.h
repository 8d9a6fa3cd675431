/* data/formats/webdataset/merge.h: which sample of an archive another archive has fields for: that with the same key. */
#pragma once

#include <stdint.h>

#include "daemon/data/formats/webdataset/tar_walk.h"
#include "proto/base/why.h"

#define MERGE_NOTHING UINT64_MAX

/* Two archives of one folder, with their names for messages. */
struct merge_pair {
        const char *root, *base_name, *other_name;
        const struct found_shard *base, *other;
};

/* Finds for each sample of the base where its first member is among those of the other archive; MERGE_NOTHING if that
 * does not have its key. Keys may come in any sequence. Takes n_keys places. Returns 0; -EBADMSG with `why` if one
 * archive has a key twice or the other one has a key that the base lacks; -ENOMEM, -ECANCELED. */
int merge_match(const struct merge_pair *pair, uint64_t *first_members, struct why *why);
