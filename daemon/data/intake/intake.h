/* data/intake/intake.h: a stream: tar archives that are served while they are still being written.
 *
 * A thread, the intake, takes shard after shard and appends the places of its samples to a source that grows
 * (data/growth.h). Samples are numbered as they arrive, and a number never changes its meaning: on every node, and
 * after a restart. So a stream has what a dataset with an index has: one row of positions that is dealt out to the
 * ranks, and a resume at any of them. Only its length is unknown until it ends.
 *
 * Shards come from a folder, by name, until it has a file _SUCCESS; or from a list of names (a pattern), until the last
 * of them. A shard is taken as a whole, once it has its end mark: half of one is waited for. What was taken is kept in
 * a roll (roll.h), so that after a restart the same shards have the same numbers.
 *
 * A shard that is compressed (gzip, zstd) is unpacked into a spool (spool.h), and its samples are read there.
 *
 * The first shard says which fields there are. What is wrong with a later one is a sample that is damaged: the job's
 * on_error decides. */
#pragma once

#include "daemon/data/format.h"
#include "daemon/data/source.h"

struct intake_spec {
        int root_fd;
        const struct files *files;
        const struct format_options *options;
        const char *roll; /* path of a file of its own */
        struct budget *budget;
};

/* Waits for the first shard, and starts the thread. The source lives until source_close(). Returns 0 or an errno with
 * `why`: the first shard is damaged; -ECANCELED by `watch`, which may be NULL. Blocks until there is a first shard. */
int intake_open(const struct intake_spec *spec, const struct index_watch *watch, struct source **ret_source,
                struct why *why);
