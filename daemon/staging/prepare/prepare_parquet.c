#include "daemon/staging/prepare/prepare_parquet.h"

/* A batch is what the reader of the stream holds at a time, so batches have about BATCH_BYTES however long rows are.
 * iter_batches() also reads nested columns of more than 2 GiB a row group, which read_row_group() refuses. */
const char PARQUET_TO_ARROW[] =
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
