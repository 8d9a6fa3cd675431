/* What hf://datasets/ORG/NAME@COMMIT/PATH means (origin_pattern.h), a thousand entries a request; the Link header says
 * where the next are. Only its query is followed: mirrors of the hub name the hub there, which the token is not for. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/patterns/glob_match.h"
#include "daemon/fetch/hub_address.h"
#include "daemon/fetch/origin/hub_listing.h"
#include "daemon/fetch/origin/hub_pin.h"
#include "daemon/fetch/origin/origin_pattern.h"
#include "daemon/fetch/origin/origin_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define PAGE_BYTES_MAX (16u << 20)

struct hub_listing {
        struct origin_run *run;
        struct hub_place place;
        struct origin_pattern pattern;
        char *first_path; /* of all: the listing goes round if it comes again; NULL: nothing came yet */
        uint64_t n_files;
        const char *only; /* the one file that is meant; NULL: the pattern says */
        struct why *why;
};

static int add_entry(struct hub_listing *listing, const struct hub_entry *entry) {
        size_t n_folder = listing->only ? strlen(listing->only) - strlen(text_after_slash(listing->only)) : 0;
        struct plan_file file = { .path = entry->path + (listing->only ? n_folder : listing->pattern.n_base),
                                  .n_bytes = entry->n_bytes,
                                  .sha256 = entry->sha256,
                                  .etag = entry->etag };
        _cleanup_(freep) char *url = NULL;

        if (asprintf(&url, "hf://datasets/%s@%s/%s", listing->place.repository, listing->place.revision, entry->path) <
            0) {
                url = NULL;
                return -ENOMEM;
        }
        listing->n_files++;
        return origin_add(listing->run, &file, url, listing->why);
}

static int hf_on_entry(void *userdata, const struct hub_entry *entry) {
        struct hub_listing *listing = userdata;
        bool is_taken;
        int r;

        if (listing->first_path && strcmp(listing->first_path, entry->path) == 0)
                return why_set(listing->why, -EPROTO, "%s: the hub's listing begins again at \"%s\"",
                               listing->run->shown, entry->path);
        if (!listing->first_path && !(listing->first_path = strdup(entry->path)))
                return -ENOMEM;
        is_taken = entry->is_file && (listing->only ? strcmp(listing->only, entry->path) == 0
                                                    : origin_pattern_takes(&listing->pattern, entry->path));
        r = origin_count(listing->run, is_taken ? 2 * strlen(entry->path) + 160 : 0, listing->why);
        return r == 0 && is_taken ? add_entry(listing, entry) : r;
}

/* ---- pages --------------------------------------------------------------------------------------------------- */

/* `query` NULL: the last page was read. */
static int next_query(const struct hub_listing *listing, const struct http_answer *answer, char **query) {
        const char *mark = answer->next ? strchr(answer->next, '?') : NULL;
        char *next = NULL;

        if (answer->next && (!mark || strcmp(mark + 1, *query) == 0))
                return why_set(listing->why, -EPROTO,
                               "%s: the hub says that its listing goes on after %" PRIu64 " names, but not how",
                               listing->run->shown, listing->run->n_listed);
        if (mark && !(next = strdup(mark + 1)))
                return -ENOMEM;
        free(*query);
        *query = next;
        return 0;
}

static int hub_get_page(struct hub_listing *listing, const char *ask, char **query) {
        _cleanup_(http_answer_fini) struct http_answer answer = { 0 };
        struct origin_run *run = listing->run;
        struct why inner = { 0 };
        int r = http_get(run->http, ask, *query, PAGE_BYTES_MAX, run->options->cancel, &answer, &inner);

        if (r < 0)
                return why_set(listing->why, r, "%s: %s", run->shown, hub_failure(&inner));
        r = hub_listing_parse(answer.body, answer.n_bytes, hf_on_entry, listing, &inner);
        if (r < 0 && inner.text[0]) /* else hf_on_entry() has said it */
                return why_set(listing->why, r, "%s: %s", run->shown, inner.text);
        if (r == 0)
                r = next_query(listing, &answer, query);
        return r < 0 ? r : origin_progress(run, listing->n_files, listing->why);
}

/* Lists a folder; `n_folder` bytes of `folder`, without a slash at its end. */
static int hf_list_folder(struct hub_listing *listing, const char *folder, size_t n_folder, bool is_recursive) {
        _cleanup_(freep) char *query = strdup(is_recursive ? "recursive=true&expand=false"
                                                           : "recursive=false&expand=false");
        _cleanup_(freep) char *ask = malloc(3 * n_folder + sizeof(listing->place.repository) + 128);
        _cleanup_(freep) char *name = strndup(folder, n_folder);
        int n, r = 0;

        if (!query || !ask || !name)
                return -ENOMEM;
        free(listing->first_path);
        listing->first_path = NULL;
        n = sprintf(ask, "hf://api/datasets/%s/tree/%s%s", listing->place.repository, listing->place.revision,
                    n_folder > 0 ? "/" : "");
        url_encode_path(name, ask + n);
        while (query && r == 0)
                r = hub_get_page(listing, ask, &query);
        return r;
}

/* ---- the origin ---------------------------------------------------------------------------------------------- */

/* A path without pattern may be a file as well: then its folder knows it. */
static int list_file(struct hub_listing *listing) {
        const char *path = listing->place.path, *name = text_after_slash(path);

        listing->only = path;
        return hf_list_folder(listing, path, name > path ? (size_t)(name - path) - 1 : 0, false);
}

static int hub_check_found(const struct hub_listing *listing) {
        const char *shown = listing->run->shown, *missing = origin_pattern_missing(&listing->pattern);

        if (missing)
                return why_set(listing->why, -ENOENT, "%s: there is no file \"%s\" in this revision%s", shown, missing,
                               strpbrk(missing, GLOB_CHARACTERS) ? ": nothing matches it" : "");
        if (listing->n_files > 0)
                return 0;
        return why_set(listing->why, -ENOENT,
                       *listing->place.path ? "%s: there is no such file or folder in this revision"
                                            : "%s: there is no file in this revision",
                       shown);
}

static int list_all(struct hub_listing *listing) {
        const char *path = listing->place.path;
        bool may_be_file = *path && !listing->pattern.items && path[strlen(path) - 1] != '/';
        size_t n_folder = listing->pattern.n_base;
        struct why missing = { 0 };
        struct why *why = listing->why;
        int r;

        if (may_be_file)
                listing->why = &missing;
        r = hf_list_folder(listing, listing->pattern.prefix, n_folder > 0 ? n_folder - 1 : 0, true);
        listing->why = why;
        if (may_be_file && (r == -ENOENT || (r == 0 && listing->n_files == 0)))
                r = list_file(listing);
        else if (r < 0 && may_be_file)
                why_set(why, r, "%s", missing.text);
        return r < 0 ? r : hub_check_found(listing);
}

int origin_hf(struct origin_run *run, struct why *why) {
        struct hub_listing listing = { .run = run, .why = why };
        struct why inner = { 0 };
        int r = hub_place_parse(&run->address, &listing.place, why);

        if (r < 0)
                return r;
        r = origin_pattern_init(&listing.pattern, listing.place.path, &inner);
        if (r < 0)
                return why_set(why, r, "%s: %s", run->shown, r == -ENOMEM ? "no memory" : inner.text);
        r = list_all(&listing);
        free(listing.first_path);
        origin_pattern_fini(&listing.pattern);
        return r;
}
