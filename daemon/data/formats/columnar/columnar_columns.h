/* data/formats/columnar/columnar_columns.h: what becomes of each column of a dataset, and where it is in each file. */
#pragma once

#include "daemon/data/formats/columnar/columnar.h"

/* Decides for all columns, or for those that `fields` names. `reading` is the first file. Columns among the refusals
 * are passed over; one that cannot be served is added there. Returns 0; or an errno with `why`, which names the column.
 */
int columnar_columns_plan(struct columnar_pass *pass, void *reading, const char *fields, struct why *why);

/* A file begins: finds each column there. Numbers get a type that has those of this file, too, unless it is empty.
 * Returns 0; or an errno with `why`, which names the column that is of another type there, and marks it. */
int columnar_columns_find(struct columnar_pass *pass, const void *file, bool is_empty, struct why *why);

/* Adds what a part has found. Returns false, and adds nothing, if inner lists are longer in one than in the other: that
 * is refused by who reads both. */
bool columnar_columns_add(struct columnar_columns *columns, const struct columnar_columns *part);

/* Settles what the first pass has found out. Returns 0, or an errno with `why`, which names the column and marks it. */
int columnar_columns_settle(struct columnar_pass *pass, struct why *why);
