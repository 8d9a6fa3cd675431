#include "client/dlctl/kinds/kinds_help.h"

#define KIND(family, name, text) { KIND_OF_##family, name, text },
static const struct kind_help ROWS[] = {
#include "client/dlctl/generated/kinds_rows.h"
};
#undef KIND

const struct kind_help *kinds_help_table(size_t *ret_n) {
        *ret_n = sizeof(ROWS) / sizeof(ROWS[0]);
        return ROWS;
}

const char *kinds_help_title(enum kind_of of) {
        static const char *const TITLES[KIND_OF_N] = {
                [KIND_OF_pictures] = "Steps for pictures",   [KIND_OF_sounds] = "Steps for sound",
                [KIND_OF_fields] = "Steps for other fields", [KIND_OF_collations] = "How samples become a batch",
                [KIND_OF_samplers] = "Steps of samplers",    [KIND_OF_formats] = "Formats of datasets",
                [KIND_OF_preparation] = "Steps at staging",
        };

        return TITLES[of];
}
