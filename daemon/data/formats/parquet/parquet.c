#include "daemon/data/format.h"

/* parquet: Parquet files as datasets, pandas, Polars, Spark or DuckDB write them. A row is a sample, a column is a
 * field. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/disk.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/formats/parquet/fill.h"
#include "daemon/data/formats/parquet/survey.h"
#include "proto/base/cleanup.h"

static int parquet_build(int root_fd, const struct files *files, const struct format_options *options,
                         const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(parquet_pass_fini) struct parquet_pass pass = {
                .root_fd = root_fd,
                .files = files,
                .watch = watch,
                .refusals = format_refusals(options),
                .why = why,
        };
        int r = parquet_pass_open(&pass, format_option(options, "split"), format_option(options, "fields"));

        if (r == 0)
                r = parquet_survey(&pass);
        return r < 0 ? r : parquet_fill(&pass, ret_builder);
}

static int parquet_is_it(int root_fd, const struct files *files) {
        _cleanup_(closep) int fd = -1;
        char path[PATH_MAX], magic[4];
        int r = shards_first(root_fd, files, &PARQUET_SHARDS, path);

        if (r <= 0)
                return r;
        fd = beneath_open(root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        r = fd < 0 ? -errno : disk_read_at(fd, magic, sizeof(magic), 0);
        if (r < 0)
                return format_cannot_tell(r);
        return memcmp(magic, "PAR", 3) == 0 && (magic[3] == '1' || magic[3] == 'E');
}

static const struct setting OPTIONS[] = {
        OPTION_FIELDS,
        OPTION_SPLIT,
        { 0 },
};

const struct format FORMAT_PARQUET = {
        .name = "parquet",
        .takes_files = true,
        .options = OPTIONS,
        .is_it = parquet_is_it,
        .build = parquet_build,
};
