/* lib/orders/column_file.h: numbers that a sampler needs, from a text file: one a line, blank lines left out. */
#pragma once

#include <stdint.h>

#include "proto/base/why.h"
#include "proto/order/making/column.h"

/* Reads the file: int64 if all are whole numbers, else float64. On success the caller frees *ret_values (malloc).
 * Blocks. -EINVAL with the line, -ENOMEM, errnos of open() and read(). `column` gets everything but its name. */
int dli_column_file_read(const char *path, struct dlp_column *ret_column, void **ret_values, struct why *why);
