#include "daemon/data/format.h"

/* parquet: Parquet files as datasets, pandas, Polars, Spark or DuckDB write them. A row is a sample, a column is a
 * field. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/data/files/shards.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/formats/parquet/parquet_reading.h"
#include "daemon/data/formats/parquet/parquet_schema.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

static bool is_parquet(const char *name) {
        const char *dot = strrchr(name, '.');

        return name[0] != '.' && dot && strcmp(dot, ".parquet") == 0;
}

static const struct shards_kind SHARDS = {
        .what = "Parquet file",
        .pattern = "*.parquet",
        .path = "a folder of .parquet files, or of one folder that has them, or such a file, or a pattern; split = "
                "\"train\" chooses train-*.parquet or a folder \"train\"",
        .is_taken = is_parquet,
        .begins_so = true,
        .numbers_splits = true, /* the hub stores them so */
};

static int parquet_build(int root_fd, const struct files *files, const struct format_options *options,
                         const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(parquet_schema_fini) struct parquet_schema schema = { 0 };
        _cleanup_(listed_fini) struct listed listed = { 0 };
        struct columnar_pass pass = { .format = &PARQUET_READING,
                                      .name = format_parquet.name,
                                      .root_fd = root_fd,
                                      .files = files,
                                      .watch = watch,
                                      .refusals = format_refusals(options),
                                      .why = why,
                                      .listed = &listed,
                                      .schema = &schema };
        int r = shards_find(&listed, root_fd, files, &SHARDS, format_option(options, "split"), &pass.settled_ns, why);

        if (r == 0)
                r = columnar_build(&pass, format_option(options, "fields"), ret_builder);
        columnar_fini(&pass);
        return r;
}

static int parquet_is_it(int root_fd, const struct files *files) {
        _cleanup_(closep) int fd = -1;
        char path[PATH_MAX], magic[4];
        int r = shards_first(root_fd, files, &SHARDS, path);

        if (r <= 0)
                return r;
        fd = beneath_open(root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        r = fd < 0 ? -errno : indexing_read_at(fd, magic, sizeof(magic), 0);
        if (r < 0)
                return format_cannot_tell(r);
        return memcmp(magic, "PAR", 3) == 0 && (magic[3] == '1' || magic[3] == 'E');
}

static const struct setting OPTIONS[] = {
        OPTION_FIELDS,
        OPTION_SPLIT,
        { 0 },
};

static const struct format_naming NAMES[] = { { ".parquet", .is_end = true }, { 0 } };

/* A batch is what the reader of the stream holds at a time, so batches have about BATCH_BYTES however long rows are.
 * iter_batches() also reads nested columns of more than 2 GiB a row group, which read_row_group() refuses. */
static const char TO_ARROW[] =
        "import sys\n"
        "BATCH_BYTES = 16 << 20\n"
        "try:\n"
        "    import pyarrow, pyarrow.ipc, pyarrow.parquet\n"
        "except ImportError as error:\n"
        "    sys.exit(f'converting Parquet needs pyarrow ({error}); install it with \"{sys.executable} -m pip install '\n"
        "             'pyarrow\", or set DATALOADERD_PYTHON to a Python that has it')\n"
        "try:\n"
        "    file = pyarrow.parquet.ParquetFile(sys.stdin.buffer)\n"
        "    meta = file.metadata\n"
        "    n_bytes = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))\n"
        "    n_rows = max(1, min(65536, BATCH_BYTES * meta.num_rows // max(1, n_bytes)))\n"
        "    with pyarrow.ipc.new_stream(sys.stdout.buffer, file.schema_arrow) as writer:\n"
        "        for batch in file.iter_batches(batch_size=n_rows):\n"
        "            writer.write_batch(batch)\n"
        "except (pyarrow.ArrowException, OSError) as error:\n"
        "    sys.exit(f'not converted: {error}')\n";

static const struct format_conversion CONVERSIONS[] = { { ".parquet", { NULL, "-c", TO_ARROW } }, { 0 } };

const struct format format_parquet = {
        .name = "parquet",
        .doc = "A folder of `.parquet` files (in the order of their names) as datasets, pandas, Polars or DuckDB "
               "write them, such a file, or a pattern. A row is a sample and a column is a field.",
        .example = "path = \"/data/web/*.parquet\" fields = \"url, text\"",
        .takes_files = true,
        .options = OPTIONS,
        .names = NAMES,
        .conversions = CONVERSIONS,
        .converts = "Parquet files (.parquet)",
        .is_it = parquet_is_it,
        .build = parquet_build,
};
