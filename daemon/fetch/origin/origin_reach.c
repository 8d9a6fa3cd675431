#include "daemon/fetch/origin/origin_reach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fetch/hub_address.h"
#include "daemon/fetch/local_file.h"
#include "daemon/fetch/origin/origin_private.h"
#include "proto/base/cleanup.h"

void origin_reach_init(struct origin_reach *reach, const struct url *origin) {
        *reach = (struct origin_reach){ .origin = origin };
        if (origin->scheme != URL_FILE)
                return;
        local_file_reach(origin->text, reach->folder);
        reach->may_all = reach->folder[0] == '\0';
}

/* A file of this machine below the origin's folder. */
static bool is_below(const struct origin_reach *reach, const struct url *address) {
        _cleanup_(freep) char *real = NULL;
        char path[PATH_MAX];

        if (!reach->folder[0] || url_local_path(address, path, NULL) < 0)
                return false;
        real = realpath(path, NULL);
        return real && strncmp(real, reach->folder, strlen(reach->folder)) == 0;
}

/* In its bucket, or its repository. */
static bool is_own_place(const struct origin_reach *reach, const struct url *address) {
        struct hub_place own, other;

        if (reach->origin->scheme != address->scheme)
                return false;
        if (address->scheme == URL_HF)
                return hub_place_parse(reach->origin, &own, NULL) == 0 && hub_place_parse(address, &other, NULL) == 0 &&
                       strcmp(own.repository, other.repository) == 0;
        return address->n_host == reach->origin->n_host &&
               memcmp(address->host, reach->origin->host, address->n_host) == 0;
}

static int origin_reach_refuse(const struct url *address, const char *what, struct why *why) {
        char shown[URL_SHOWN_SIZE];

        return why_set(why, -EACCES, "%s: %s", url_show(address->text, shown), what);
}

int origin_reach_check(const struct origin_reach *reach, const char *url, struct why *why) {
        struct url address;
        int r;

        if (reach->may_all)
                return 0;
        r = url_parse(url, &address, why);
        if (r < 0)
                return r;
        if (address.scheme == URL_HTTPS)
                return 0;
        if (address.scheme == URL_FILE) {
                if (reach->origin->scheme != URL_FILE)
                        return origin_reach_refuse(&address,
                                                   "only a manifest or list on this machine may name its files", why);
                return is_below(reach, &address)
                               ? 0
                               : origin_reach_refuse(
                                         &address,
                                         "it does not exist below the folder of a manifest or list that others may "
                                         "write; chmod go-w it, or give it to the user who stages",
                                         why);
        }
        if (url_is_plain(address.scheme))
                return is_own_place(reach, &address)
                               ? 0
                               : origin_reach_refuse(
                                         &address,
                                         "a manifest or list may name objects of its own bucket or repository only, "
                                         "since they are fetched with your keys; put it on this machine to name others",
                                         why);
        if (reach->origin->scheme == URL_HTTP || reach->origin->scheme == URL_FILE)
                return 0;
        return origin_reach_refuse(
                &address,
                "a manifest or list that came over an encrypted connection may not name http; write https, or "
                "put it on this machine",
                why);
}

int origin_reach_check_plan(const struct origin_reach *reach, const struct plan *plan, struct why *why) {
        struct why inner;

        for (uint64_t i = 0; i < plan_n_files(plan); i++) {
                const struct plan_file *file = plan_file(plan, i);

                for (uint32_t k = 0; k < file->n_urls; k++) {
                        int r = origin_reach_check(reach, file->urls[k], &inner);

                        if (r < 0)
                                return why_set(why, r, "path \"%s\": %s", file->path, inner.text);
                }
        }
        return 0;
}
