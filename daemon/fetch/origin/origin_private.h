/* fetch/origin/origin_private.h: what the kinds of origins share. */
#pragma once

#include "daemon/fetch/origin/origin.h"
#include "daemon/store/record/origin_kind.h"
#include "daemon/store/record/url.h"

/* Bytes of a manifest or list, where memory allows: ten million files and more. */
#define ORIGIN_TEXT_MAX (2ull << 30)

/* One survey. */
struct origin_run {
        const struct origin_options *options;
        struct http *http;
        const char *url;    /* options->url; of the hub, of one commit */
        struct url address; /* of it */
        char shown[URL_SHOWN_SIZE];
        bool unpack; /* what is an archive by its name, of many files; the one of an "archive" */

        struct plan *found; /* so far */
        struct plan *plan;  /* of a manifest: that is the plan, and nothing is added */
        uint64_t n_told;    /* files, when progress was last told */
        uint64_t told_ns;
        uint64_t n_listed;       /* names that a listing gave */
        uint64_t n_listed_bytes; /* about what a plan of all of them takes */
};

int origin_manifest(struct origin_run *run, struct why *why);
int origin_list(struct origin_run *run, struct why *why);
int origin_s3(struct origin_run *run, struct why *why);
int origin_folder(struct origin_run *run, struct why *why);
int origin_hf(struct origin_run *run, struct why *why);
int origin_file(struct origin_run *run, struct why *why); /* "archive", too */

/* The same of the names that the braces of a web server's URL stand for. */
int origin_names(struct origin_run *run, struct why *why);

/* Adds a file with one URL; what is an archive by its name is unpacked if the run says so. `why` names the origin. */
int origin_add(struct origin_run *run, struct plan_file *file, const char *url, struct why *why);

struct http_answer;

/* Reads the origin's text: a manifest or list, of as many bytes as the options and the memory allow. As http_get_if();
 * `wanted` may be NULL: it is. */
int origin_text(struct origin_run *run, http_wanted wanted, struct http_answer *ret_answer, struct why *why);

/* Counts a name that a listing gave; `n_bytes`: of its texts in a plan; 0: it is passed over. -EFBIG with `why` once a
 * plan of it would take too much memory.
 */
int origin_count(struct origin_run *run, size_t n_bytes, struct why *why);

/* Tells how many files there are so far, if it is time. -ECANCELED if the run is to end. The caller's thread. */
int origin_progress(struct origin_run *run, uint64_t n_files, struct why *why);

/* The size of one document and how to know it again: of a file on this machine, or as http_look() says. Refuses what
 * does not say its size, and pages of HTML in place of a file of another name. `url` and its parts. Any thread. */
int origin_look(struct http *http, const char *url, const struct url *address, const _Atomic bool *cancel,
                struct http_facts *ret_facts, struct why *why);

/* The ETag that a file on this machine gets. */
struct stat;
void origin_local_etag(const struct stat *stat, char *ret_etag, size_t n_bytes);
