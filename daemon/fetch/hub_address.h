/* fetch/hub_address.h: datasets of the Hugging Face hub by name, and where the hub is asked for them.
 *
 *   hf://datasets/ORG/NAME[@REVISION]/PATH   a file or folder; nothing of the path is percent-encoded
 *   hf://api/...                             a request to the hub's API, encoded already: of origin_hf.c's own
 *
 * A revision is a branch, a tag or a commit's id. It ends at the next slash, but for "refs/pr/7" and
 * "refs/convert/parquet"; a slash in others is written as %2F. */
#pragma once

#include <stddef.h>

#include "daemon/store/record/url.h"
#include "proto/base/why.h"

#define HUB_ENDPOINT      "https://huggingface.co"
#define HUB_NAME_MAX      96u  /* bytes of ORG and of NAME */
#define HUB_REVISION_MAX  255u /* bytes */
#define HUB_REVISION_MAIN "main"

struct hub_place {
        char repository[2 * HUB_NAME_MAX + 2]; /* "ORG/NAME" */
        char revision[HUB_REVISION_MAX + 1];   /* decoded */
        const char *path;                      /* within the URL's text, without its first slash; "": all of it */
};

/* What a URL of hf://datasets names. Returns 0, or -EINVAL with `why`. */
int hub_place_parse(const struct url *url, struct hub_place *ret_place, struct why *why);

/* The http(s) address of a file, or of a request to the API. The caller's (free). Returns 0; -EINVAL with `why`;
 * -ENOMEM. `endpoint`: "https://host". */
int hub_address(const char *endpoint, const char *text, char **ret_address, struct why *why);
