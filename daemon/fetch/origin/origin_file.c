/* One file, or one archive that is unpacked. */

#include <errno.h>
#include <string.h>

#include "daemon/fetch/origin/origin_private.h"
#include "proto/base/cleanup.h"

int origin_file(struct origin_run *run, struct why *why) {
        _cleanup_(freep) char *path = malloc(run->address.n_path + 1);
        struct plan_file file = { .unpack = run->unpack };
        struct http_facts facts;
        const char *slash;
        int r;

        if (!path)
                return -ENOMEM;
        if (run->address.scheme == URL_HF) /* the hub's listing knows its SHA-256 */
                return origin_hf(run, why);
        if (origin_has_pattern(&run->address) && !url_is_plain(run->address.scheme))
                return origin_names(run, why);
        r = url_plain_path(&run->address, path, why);
        if (r < 0)
                return r;
        slash = strrchr(path, '/');
        file.path = slash ? slash + 1 : path;
        if (!*file.path)
                return why_set(why, -EINVAL, "%s: the URL does not end with a file name", run->shown);
        r = origin_look(run->http, run->url, &run->address, run->options->cancel, &facts, why);
        if (r < 0)
                return r;
        file.n_bytes = facts.n_bytes;
        file.etag = facts.etag[0] ? facts.etag : NULL;
        file.modified = !file.etag && facts.modified[0] ? facts.modified : NULL;
        return origin_add(run, &file, run->url, why);
}
