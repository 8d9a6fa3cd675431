/* data/formats/columnar/columnar_fill.h: puts rows into an index, column by column. */
#pragma once

#include "daemon/data/formats/columnar/columnar.h"

struct columnar_filling;

/* For all rows, or, with the filling of all of them as `whole`, for those of a part. -ENOMEM, -E2BIG. */
int columnar_filling_new(struct columnar_pass *pass, struct columnar_filling *whole,
                         struct columnar_filling **ret_filling);
void columnar_filling_free(struct columnar_filling *filling);
void columnar_filling_freep(struct columnar_filling **filling);

/* Gives back what only reading needs, since parts wait to be taken. */
void columnar_filling_rest(struct columnar_filling *filling);

/* A file begins. All of these return 0 or an errno with `why`. */
int columnar_fill_file(struct columnar_filling *filling, const char *name, const struct stat *status, struct why *why);

/* `why` names the column, but not the batch. */
int columnar_fill_rows(struct columnar_filling *filling, void *reading, const struct columnar_rows *rows,
                       struct why *why);

/* Adds what a part has found. Positive: which row is too much? They are to be visited again. */
int columnar_fill_take(struct columnar_filling *filling, struct columnar_filling *part, struct why *why);

/* The builder, which is the caller's from then on. */
struct index_builder *columnar_fill_take_builder(struct columnar_filling *filling);
