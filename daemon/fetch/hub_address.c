#include "daemon/fetch/hub_address.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hub_refuse(const struct url *url, const char *what, struct why *why) {
        char shown[URL_SHOWN_SIZE];

        return why_set(why, -EINVAL, "\"%s\" %s", url_show(url->text, shown), what);
}

static bool is_host(const struct url *url, const char *name) {
        return url->n_host == strlen(name) && memcmp(url->host, name, url->n_host) == 0;
}

/* A name of the hub: what else could stand there would be read as another path by some server on the way. */
static bool is_hub_name(const char *name, size_t n) {
        if (n == 0 || n > HUB_NAME_MAX || *name == '.' || *name == '-')
                return false;
        for (size_t i = 0; i < n; i++)
                if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", name[i]))
                        return false;
        return true;
}

/* How many bytes of "refs/pr/7/..." are the revision. */
static size_t revision_bytes(const char *text) {
        size_t n = strcspn(text, "/");

        for (int i = 0; i < 2 && (strncmp(text, "refs/pr/", 8) == 0 || strncmp(text, "refs/convert/", 13) == 0); i++)
                n += text[n] ? 1 + strcspn(text + n + 1, "/") : 0;
        return n;
}

int hub_place_parse(const struct url *url, struct hub_place *ret_place, struct why *why) {
        struct hub_place place = { .revision = HUB_REVISION_MAIN };
        const char *org = url->path + (url->n_path > 0), *name, *at;
        size_t n_org = strcspn(org, "/@"), n_name;

        if (!is_host(url, "datasets"))
                return hub_refuse(url, "names no dataset of the hub; write hf://datasets/ORG/NAME[@REVISION]/PATH",
                                  why);
        if (org[n_org] != '/')
                return hub_refuse(url, "does not say whose it is; write hf://datasets/ORG/NAME", why);
        name = org + n_org + 1;
        n_name = strcspn(name, "/@");
        if (!is_hub_name(org, n_org) || !is_hub_name(name, n_name))
                return hub_refuse(url,
                                  "has an organization or name that the hub does not allow: letters, digits, '-', '_' "
                                  "and '.', 96 at most each",
                                  why);
        snprintf(place.repository, sizeof(place.repository), "%.*s/%.*s", (int)n_org, org, (int)n_name, name);
        at = name + n_name;
        if (*at == '@') {
                size_t n = revision_bytes(++at);

                if (n == 0 || n > HUB_REVISION_MAX || url_decode(at, n, place.revision) < 0)
                        return hub_refuse(url, "has no revision after its '@'; write a branch, a tag or a commit's id",
                                          why);
                at += n;
        }
        place.path = at + (*at == '/');
        *ret_place = place;
        return 0;
}

int hub_address(const char *endpoint, const char *text, char **ret_address, struct why *why) {
        char revision[3 * HUB_REVISION_MAX + 1], *address;
        size_t n_size = strlen(endpoint) + sizeof(revision) + 3 * strlen(text) + 64;
        struct hub_place place;
        struct url url;
        int r = url_parse(text, &url, why), n;

        if (r < 0)
                return r;
        address = malloc(n_size);
        if (!address)
                return -ENOMEM;
        if (url.scheme == URL_HF && is_host(&url, "api")) {
                snprintf(address, n_size, "%s/api%s", endpoint, url.path);
                *ret_address = address;
                return 0;
        }
        r = hub_place_parse(&url, &place, why);
        if (r == 0 && !*place.path)
                r = hub_refuse(&url, "names no file in the repository", why);
        if (r < 0) {
                free(address);
                return r;
        }
        url_encode_value(place.revision, revision);
        n = snprintf(address, n_size, "%s/datasets/%s/resolve/%s/", endpoint, place.repository, revision);
        url_encode_path(place.path, address + n);
        *ret_address = address;
        return 0;
}
