#include "client/dlctl/orders/given.h"

#include <stdlib.h>
#include <string.h>

#include "client/dlctl/control.h"
#include "client/lib/orders/column_file.h"

int given_read(const struct option_list *list, struct given *ret_given) {
        *ret_given = (struct given){ .n = 0 };
        for (size_t i = 0; i < list->n; i++) {
                const char *option = list->values[i], *equals = strchr(option, '=');
                struct dlp_column column;
                struct why why = { "" };
                size_t n = ret_given->n;

                if (!equals || equals == option)
                        return fail(EXIT_USAGE, "--column: \"%s\"; expected NAME=FILE", option);
                if (dli_column_file_read(equals + 1, &column, &ret_given->values[n], &why) < 0)
                        return fail(EXIT_REFUSED, "%s", why.text);
                ret_given->names[n] = strndup(option, (size_t)(equals - option));
                ret_given->n++;
                if (!ret_given->names[n])
                        return fail(EXIT_REFUSED, "out of memory");
                ret_given->columns[n] = (struct dlc_column){ .name = ret_given->names[n],
                                                             .dtype = column.dtype,
                                                             .values = column.values,
                                                             .n_values = column.n_values };
        }
        return EXIT_DONE;
}

void given_free(struct given *given) {
        for (size_t i = 0; i < given->n; i++) {
                free(given->names[i]);
                free(given->values[i]);
        }
        given->n = 0;
}
