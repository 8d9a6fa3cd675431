/* staging/prepare/prepare_parquet.h: the program that `prepare = "convert"` runs. */
#pragma once

/* Python, for `python3 -c`: reads a Parquet file from standard input, which must be a file and no pipe, and writes its
 * rows to standard output as an Arrow stream. Needs pyarrow, and says so where it is missing. */
extern const char PARQUET_TO_ARROW[];
