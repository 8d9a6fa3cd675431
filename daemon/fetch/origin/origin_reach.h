/* fetch/origin/origin_reach.h: what a manifest or list may send us to.
 *
 * Its lines are the words of whoever wrote it, the requests are ours: our files, our keys, our network. So a manifest
 * or list that came from
 *
 *   https       may name https, any host
 *   http        may name http and https, any host
 *   s3, gs      may name its own bucket, and https
 *   hf          may name its own repository, and https
 *   file        may name anything if it belongs to this user or root and nobody else may write it; else what an http
 *               one may name, and files below its own folder, links not followed out of it
 *
 * Credentials of web servers go to the origin's own server only (fetch/fetch_http.h), unless the origin is a
 * file. */
#pragma once

#include <stdbool.h>

#include "daemon/store/plan/plan.h"
#include "daemon/store/record/url.h"
#include "proto/base/why.h"

struct origin_reach {
        const struct url *origin;
        bool may_all;          /* a file that only we and root may write */
        char folder[PATH_MAX]; /* of a file: below which files may lie (fetch/local_file.h) */
};

/* `origin`: of the manifest or list; outlives it. Blocks for the file system if it is a file. */
void origin_reach_init(struct origin_reach *reach, const struct url *origin);

/* May it name this URL, which url_parse() allows? Returns 0, or -EACCES with `why`, which says what is allowed. */
int origin_reach_check(const struct origin_reach *reach, const char *url, struct why *why);

/* The same for every URL of a plan; `why` names path and URL. */
int origin_reach_check_plan(const struct origin_reach *reach, const struct plan *plan, struct why *why);
