/* data/formats/listing/csv/csv_cell.h: what a text without quotes is by itself: a number, true or false, or only a text. */
#pragma once

#include "daemon/data/formats/listing/listing_columns.h"

/* Sets the kind of a cell, and its value. Blanks around a number do not count. A whole number with zeros before it, or
 * beyond uint64 and int64, is a text: nothing may get lost. No byte is an absent cell. */
void csv_cell_judge(const uint8_t *text, size_t n, struct table_cell *cell);
