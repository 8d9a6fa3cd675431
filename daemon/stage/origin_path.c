/* Paths of URLs, as files have them. */

#include <errno.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/stage/origin_private.h"

int origin_decoded_path(const struct address *address, char *ret_path, struct why *why) {
        const char *path = address->path + (address->n_path > 0);
        size_t n = address->n_path - (address->n_path > 0);
        char shown[ADDRESS_SHOWN_SIZE];

        if (address_has_scheme(address, "s3")) {
                memcpy(ret_path, path, n);
                ret_path[n] = '\0';
                return 0;
        }
        if (address_decode(path, n, ret_path) < 0)
                return why_set(why, -EINVAL, "%s: a '%%' without two digits behind it, or %%00; write %%25 for a '%%'",
                               address_show(address, shown));
        return 0;
}

int origin_local_path(const struct address *address, char ret_path[PATH_MAX], struct why *why) {
        _cleanup_(freep) char *path = malloc(address->n_path + 2);
        char shown[ADDRESS_SHOWN_SIZE];
        int r;

        if (!path)
                return -ENOMEM;
        path[0] = '/';
        r = origin_decoded_path(address, path + 1, why);
        if (r < 0)
                return r;
        if (strlen(path) >= PATH_MAX)
                return why_set(why, -ENAMETOOLONG, "%s: longer than paths may be", address_show(address, shown));
        strcpy(ret_path, path);
        return 0;
}
