/* data/formats/parquet/parquet_reading.h: Parquet files as tables that are kept column by column (columnar/columnar.h).
 *
 * Bytes and text of a column that is verbatim in all files stay there. Everything else is kept in the index. */
#pragma once

#include "daemon/data/formats/columnar/columnar.h"

extern const struct columnar_format PARQUET_READING;
