#include "daemon/fetch/origin/hub_pin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json/json_value.h"
#include "daemon/fetch/hub_address.h"
#include "proto/base/cleanup.h"

#define INFO_BYTES_MAX (64u << 20) /* hubs that know no "expand" list all files there, too */

/* A text of the answer. ret_text: `size` bytes. -EINVAL if there is none, or a longer one. */
static int hub_pin_text(const struct http_answer *answer, const char *name, char *ret_text, size_t size) {
        struct json_token token;
        size_t n;

        if (json_find(answer->body, answer->n_bytes, name, &token, NULL) != 0 || token.kind != JSON_STRING ||
            json_string_read(token.bytes, token.n_bytes, NULL, &n, NULL) < 0 || n >= size)
                return -EINVAL;
        json_string_read(token.bytes, token.n_bytes, (uint8_t *)ret_text, &n, NULL);
        ret_text[n] = '\0';
        return 0;
}

static int read_info(const struct origin_run *run, const struct http_answer *answer, const struct hub_place *place,
                     char commit[HUB_COMMIT_BYTES + 1], struct why *why) {
        char name[sizeof(place->repository)];

        if (hub_pin_text(answer, "sha", commit, HUB_COMMIT_BYTES + 1) < 0 ||
            strspn(commit, "0123456789abcdef") != HUB_COMMIT_BYTES)
                return why_set(why, -EPROTO,
                               "%s: the hub does not say which commit it is (\"sha\"); is its address right?",
                               run->shown);
        if (hub_pin_text(answer, "id", name, sizeof(name)) == 0 && strcmp(name, place->repository) != 0)
                return why_set(why, -ENOENT, "%s: the repository is called \"%s\" now: write hf://datasets/%s",
                               run->shown, name, name);
        return 0;
}

const char *hub_failure(const struct why *why) {
        const char *end = strncmp(why->text, "hf://api/", 9) == 0 ? strstr(why->text, ": ") : NULL;

        return end ? end + 2 : why->text;
}

int hub_pin(struct origin_run *run, char **ret_text, struct why *why) {
        _cleanup_(http_answer_fini) struct http_answer answer = { 0 };
        char revision[3 * HUB_REVISION_MAX + 1], commit[HUB_COMMIT_BYTES + 1], ask[2048];
        struct hub_place place;
        struct why inner = { 0 };
        char *text;
        int r = hub_place_parse(&run->address, &place, why);

        if (r < 0)
                return r;
        url_show(run->address.text, run->shown);
        url_encode_value(place.revision, revision);
        snprintf(ask, sizeof(ask), "hf://api/datasets/%s/revision/%s", place.repository, revision);
        r = http_get(run->http, ask, "expand=sha", INFO_BYTES_MAX, run->options->cancel, &answer, &inner);
        if (r < 0)
                return why_set(why, r, "%s: %s", run->shown, hub_failure(&inner));
        r = read_info(run, &answer, &place, commit, why);
        if (r < 0)
                return r;
        if (asprintf(&text, "hf://datasets/%s@%s/%s", place.repository, commit, place.path) < 0)
                return -ENOMEM;
        run->url = *ret_text = text;
        r = url_parse(text, &run->address, why);
        return r;
}
