#include "daemon/store/record/origin_kind.h"
#include "daemon/base/patterns/glob_match.h"
#include "proto/base/text.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static const struct {
        const char *name;
        enum url_scheme scheme; /* the only one that it has; N_URL_SCHEMES: any */
} KINDS[N_ORIGIN_KINDS] = {
        [ORIGIN_MANIFEST] = { "manifest", N_URL_SCHEMES },
        [ORIGIN_LIST] = { "list", N_URL_SCHEMES },
        [ORIGIN_S3] = { "s3", URL_S3 },
        [ORIGIN_GS] = { "gs", URL_GS },
        [ORIGIN_HF] = { "hf", URL_HF },
        [ORIGIN_FOLDER] = { "folder", URL_FILE },
        [ORIGIN_ARCHIVE] = { "archive", N_URL_SCHEMES },
        [ORIGIN_FILE] = { "file", N_URL_SCHEMES },
};

static const char *const ARCHIVES[] = { ".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2", ".zip" };

static bool origin_kind_ends_with(const char *text, size_t n, const char *ending) {
        size_t n_ending = strlen(ending);

        return n > n_ending && strncasecmp(text + n - n_ending, ending, n_ending) == 0;
}

bool origin_ends_with(const struct url *address, const char *ending) {
        return origin_kind_ends_with(address->path, address->n_path, ending);
}

bool origin_is_archive(const char *path) {
        const char *name = text_after_slash(path);

        for (size_t i = 0; i < sizeof(ARCHIVES) / sizeof(ARCHIVES[0]); i++)
                if (origin_kind_ends_with(name, strlen(name), ARCHIVES[i]))
                        return true;
        return false;
}

bool origin_has_pattern(const struct url *address) {
        if (address->scheme == URL_FILE) /* what is there is named as it is */
                return false;
        for (size_t i = 0; i < address->n_path; i++)
                if (strchr(url_is_plain(address->scheme) ? "{" GLOB_CHARACTERS : "{", address->path[i]))
                        return true;
        return false;
}

static bool is_local_folder(const struct url *address) {
        char path[PATH_MAX];
        struct stat facts;

        return address->scheme == URL_FILE && url_local_path(address, path, NULL) == 0 && stat(path, &facts) == 0 &&
               S_ISDIR(facts.st_mode);
}

/* What the URL alone, or a look at this machine's disk, says. */
static int guess(const struct url *address, enum origin_kind_of *ret_kind, struct why *why) {
        char name[64] = "";
        size_t n_name = address->n_path < sizeof(name) ? address->n_path : sizeof(name) - 1;
        char shown[URL_SHOWN_SIZE];
        bool ends_in_slash = address->n_path > 0 && address->path[address->n_path - 1] == '/';

        memcpy(name, address->path + address->n_path - n_name, n_name);
        if ((address->scheme == URL_FILE && ends_in_slash) || is_local_folder(address))
                *ret_kind = ORIGIN_FOLDER;
        else if (origin_has_pattern(address) && !url_is_plain(address->scheme))
                *ret_kind = ORIGIN_FILE;
        else if (address->scheme == URL_HF && (origin_has_pattern(address) || !origin_is_archive(name)))
                *ret_kind = ORIGIN_HF; /* there a text or JSON Lines is data */
        else if (origin_has_pattern(address))
                *ret_kind = address->scheme == URL_GS ? ORIGIN_GS : ORIGIN_S3;
        else if (origin_ends_with(address, ".jsonl") || origin_ends_with(address, ".ndjson"))
                *ret_kind = ORIGIN_MANIFEST;
        else if (origin_ends_with(address, ".txt") || origin_ends_with(address, ".list"))
                *ret_kind = ORIGIN_LIST;
        else if (origin_is_archive(name))
                *ret_kind = ORIGIN_ARCHIVE;
        else if (address->scheme == URL_S3)
                *ret_kind = ORIGIN_S3;
        else if (address->scheme == URL_GS)
                *ret_kind = ORIGIN_GS;
        else if (address->n_path > 0 && !ends_in_slash)
                *ret_kind = ORIGIN_FILE;
        else
                return why_set(why, -EINVAL,
                               "origin \"%s\" is a folder of a web server, which cannot be listed; name a manifest "
                               "(*.jsonl), a list of URLs (*.txt), an archive, a file or several (x-{000..127}.tar)",
                               url_show(address->text, shown));
        return 0;
}

int origin_find_kind(const struct url *address, const char *name, enum origin_kind_of *ret_kind, struct why *why) {
        char shown[URL_SHOWN_SIZE];

        if (strcmp(name, "auto") == 0)
                return guess(address, ret_kind, why);
        for (enum origin_kind_of kind = 0; kind < N_ORIGIN_KINDS; kind++) {
                if (strcmp(name, KINDS[kind].name) != 0)
                        continue;
                if (KINDS[kind].scheme != N_URL_SCHEMES && address->scheme != KINDS[kind].scheme)
                        return why_set(why, -EINVAL, "origin \"%s\": the kind \"%s\" needs a URL of %s://",
                                       url_show(address->text, shown), name, url_scheme_name(KINDS[kind].scheme));
                *ret_kind = kind;
                return 0;
        }
        return why_set(why, -EINVAL,
                       "\"%s\" is not a kind of origin; write auto, manifest, list, s3, gs, hf, folder, archive or "
                       "file",
                       name);
}

int origin_kind(const char *url, const char *kind, const char **ret_kind, struct why *why) {
        enum origin_kind_of found = ORIGIN_FILE;
        struct url address;
        int r = url_parse(url, &address, why);

        if (r == 0)
                r = origin_find_kind(&address, kind, &found, why);
        if (r == 0)
                *ret_kind = KINDS[found].name;
        return r;
}
