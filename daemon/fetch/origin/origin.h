/* fetch/origin/origin.h: from an origin's URL to a plan. Each kind is a row in the table of origin.c.
 *
 *   manifest  JSON Lines (*.jsonl, *.ndjson) of it      list     a URL a line (*.txt, *.list)
 *   s3, gs    everything below s3://bucket/prefix       folder   everything below file:///folder
 *   hf        what a dataset's repository of the hub    file     one file, or those that braces in a web server's
 *             holds (fetch/hub_address.h)                        path stand for
 *   archive   one tar or zip, to be unpacked
 *
 * "auto" tells them apart by the URL: s3: and gs: with a key that is not an archive, manifest or list is a prefix, or
 * the one object that is there if nothing is below it; a file: URL that is a folder is one; of the hub, only an archive
 * is something else than data. JSON Lines whose first line has no keys of a manifest are data, one file. Braces, and *
 * and ? where names can be listed, choose among the names (origin_pattern.h).
 *
 * Paths in the plan: of a manifest its own. Of a list what is left of the URLs' paths below the longest folder that
 * they have in common, so that labels that are folders stay; two URLs of one path are refused, whatever their hosts. Of
 * s3, gs and hf the name after the prefix, which is taken as a folder; keys that end in '/' are folders' marks and left
 * out. Of a folder the path below it; links to files inside are followed, all else but files and folders is refused.
 *
 * What tells one content from another where no SHA-256 is known: the ETag of http and s3; of file: one made of the time
 * of change and size, which no server says again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/fetch/fetch_http.h"
#include "daemon/store/plan/plan.h"
#include "proto/base/why.h"

struct origin_options {
        const char *url;
        const char *kind;       /* as above, or "auto" */
        const char *unpack;     /* "auto": an origin that is an archive; "yes": archives in it, too; "no" */
        uint32_t n_connections; /* to ask for sizes with; 0: 16 */
        uint32_t n_text_max;    /* bytes of a manifest or list; 0: an eighth of the memory, 2 GiB at most */
        void (*progress)(void *userdata, uint64_t n_files); /* every thousand files or second, on the caller's thread;
                                                             * may be NULL */
        void *userdata;
        const _Atomic bool *cancel; /* may be NULL */
};

/* Blocks for as long as listing takes: a request a file where sizes must be asked for (lists), one a thousand objects
 * of S3. Sizes, ETags and digests are the origin's words. Returns 0 or an errno with `why`: as http_get(), -EINVAL for
 * what is not such a listing (an HTML page, a line that is not JSON, a path that is not allowed). */
int origin_survey(struct http *http, const struct origin_options *options, struct plan **ret_plan, struct why *why);
