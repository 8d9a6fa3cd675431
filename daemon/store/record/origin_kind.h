/* store/record/origin_kind.h: which kind of origin a URL names. The daemon checks its configuration with this, and
 * holds nothing that talks to origins. */
#pragma once

#include <stdbool.h>

#include "daemon/store/record/url.h"
#include "proto/base/why.h"

enum origin_kind_of {
        ORIGIN_MANIFEST,
        ORIGIN_LIST,
        ORIGIN_S3,
        ORIGIN_GS,
        ORIGIN_HF,
        ORIGIN_FOLDER,
        ORIGIN_ARCHIVE,
        ORIGIN_FILE,
        N_ORIGIN_KINDS
};

/* The kind that an origin has: the word of the configuration. `kind`: such a word, or "auto", which tells by the URL;
 * of a file: URL also by a look at what is there, which blocks for its file system. -EINVAL with `why` for a URL of an
 * unknown scheme or an unknown kind. */
int origin_kind(const char *url, const char *kind, const char **ret_kind, struct why *why);

/* The same of a parsed URL. */
int origin_find_kind(const struct url *address, const char *name, enum origin_kind_of *ret_kind, struct why *why);

/* Does the URL's path stand for several: braces, and where names can be listed, * and ? (base/patterns/)? */
bool origin_has_pattern(const struct url *address);

/* Does the URL's path end so, in any case, and is there more of it? */
bool origin_ends_with(const struct url *address, const char *ending);

/* By its name: .tar, .tar.gz, .tgz, .tar.zst, .tar.xz, .tar.bz2, .zip in any case. */
bool origin_is_archive(const char *path);
