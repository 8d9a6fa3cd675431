/* dlctl/kinds/kinds_help.h: what may be written in pipelines, samplers and configurations, and what is said of it.
 *
 * The rows are made from the kinds themselves (`make kinds-pages`): dlctl links none of their code. */
#pragma once

#include <stddef.h>

/* The families, in the order of `dlctl help`. */
enum kind_of {
        KIND_OF_pictures,
        KIND_OF_sounds,
        KIND_OF_collations,
        KIND_OF_fields,
        KIND_OF_samplers,
        KIND_OF_preparation,
        KIND_OF_formats,
        KIND_OF_N,
};

struct kind_help {
        enum kind_of of;
        const char *name; /* may stand again in another family */
        const char *text; /* lines of up to 79 characters, each with its end */
};

/* All rows, sorted by family, then by name. Static. */
const struct kind_help *kinds_help_table(size_t *ret_n);

/* The title of a family: "Steps for pictures". Static. */
const char *kinds_help_title(enum kind_of of);
