/* dlctl/orders/given.h: columns out of files, as --column NAME=FILE gives them, for a loader. */
#pragma once

#include "client/dlctl/dlctl_options.h"
#include "client/include/dlclient.h"

struct given {
        struct dlc_column columns[OPTION_LIST_MAX];
        void *values[OPTION_LIST_MAX];
        char *names[OPTION_LIST_MAX];
        size_t n;
};

/* Reads them. Returns EXIT_DONE, or an exit code after a message; given_free() in any case. */
int given_read(const struct option_list *list, struct given *ret_given);
void given_free(struct given *given);
