/* A manifest: the text form of a plan, written by somebody else. */

#include <errno.h>
#include <string.h>

#include "daemon/fetch/origin/origin_private.h"
#include "daemon/fetch/origin/origin_reach.h"
#include "proto/base/cleanup.h"

/* Files lie beside the manifest: beside where redirects led to, as with every document on the web; but objects of a
 * store are requested at the store's own address. */
static const char *origin_manifest_base_of(const struct origin_run *run, const struct http_answer *answer) {
        struct url address;

        if (answer->url && !url_is_plain(run->address.scheme) && url_parse(answer->url, &address, NULL) == 0 &&
            (address.scheme == URL_HTTP || address.scheme == URL_HTTPS))
                return answer->url;
        return run->url;
}

/* JSON Lines are data as often as not: the first line tells. */
int origin_manifest(struct origin_run *run, struct why *why) {
        bool may_be_data = strcmp(run->options->kind, "auto") == 0;
        _cleanup_(plan_freep) struct plan *plan = NULL;
        _cleanup_(http_answer_fini) struct http_answer answer = { 0 };
        struct origin_reach reach;
        struct why inner;
        int r;

        r = origin_text(run, may_be_data ? plan_may_begin : NULL, &answer, why);
        if (r == HTTP_NOT_WANTED)
                return origin_file(run, why);
        if (r < 0)
                return r;
        r = plan_parse(answer.body, answer.n_bytes, run->shown, origin_manifest_base_of(run, &answer), run->unpack,
                       &plan, why);
        if (r < 0)
                return r;
        origin_reach_init(&reach, &run->address);
        r = origin_reach_check_plan(&reach, plan, &inner);
        if (r < 0)
                return why_set(why, r, "%s: %s", run->shown, inner.text);
        if (run->options->progress)
                run->options->progress(run->options->userdata, plan_n_files(plan));
        run->plan = TAKE_PTR(plan);
        return 0;
}
