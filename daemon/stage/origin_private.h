/* stage/origin_private.h: what the kinds of origins share. */
#pragma once

#include <limits.h>

#include "daemon/stage/address.h"
#include "daemon/stage/origin.h"

#define ORIGIN_TEXT_MAX (2ull << 30) /* bytes of a manifest or list: ten million files and more */

enum origin_kind_of {
        ORIGIN_MANIFEST,
        ORIGIN_LIST,
        ORIGIN_S3,
        ORIGIN_FOLDER,
        ORIGIN_ARCHIVE,
        ORIGIN_FILE,
        N_ORIGIN_KINDS
};

/* One survey. */
struct origin_run {
        const struct origin_options *options;
        struct http *http;
        struct address address; /* of options->url */
        char shown[ADDRESS_SHOWN_SIZE];
        bool unpack; /* what is an archive by its name, of many files; the one of an "archive" */

        uint64_t n_told; /* files, when progress was last told */
        uint64_t told_ns;
};

typedef int (*origin_survey_fn)(struct origin_run *run, struct plan **ret_plan, struct why *why);

int origin_manifest(struct origin_run *run, struct plan **ret_plan, struct why *why);
int origin_list(struct origin_run *run, struct plan **ret_plan, struct why *why);
int origin_s3(struct origin_run *run, struct plan **ret_plan, struct why *why);
int origin_folder(struct origin_run *run, struct plan **ret_plan, struct why *why);
int origin_file(struct origin_run *run, struct plan **ret_plan, struct why *why); /* "archive", too */

/* As origin_kind(). `name`: of the kind, or "auto". */
int origin_find_kind(const struct address *address, const char *name, enum origin_kind_of *ret_kind, struct why *why);

/* Does the URL's path end so, in any case, and is there more of it? */
bool origin_ends_with(const struct address *address, const char *ending);

/* Tells how many files there are so far, if it is time. -ECANCELED if the run is to end. The caller's thread. */
int origin_progress(struct origin_run *run, uint64_t n_files, struct why *why);

/* Finishes the plan; what is wrong with it is said of this origin. */
int origin_finish(struct origin_run *run, struct plan_builder *builder, struct plan **ret_plan, struct why *why);

/* The size of one document and how to know it again: of a file on this machine, or as http_look() says. Refuses what
 * does not say its size, and pages of HTML in place of a file of another name. `url` and its parts. Any thread. */
int origin_look(struct http *http, const char *url, const struct address *address, const _Atomic bool *cancel,
                struct http_facts *ret_facts, struct why *why);

/* The path of a file: URL on this machine. -EINVAL with `why` if it cannot be decoded; -ENAMETOOLONG. */
int origin_local_path(const struct address *address, char ret_path[PATH_MAX], struct why *why);

/* The ETag that a file on this machine gets. */
struct stat;
void origin_local_etag(const struct stat *stat, char *ret_etag, size_t n_bytes);

/* The URL's path without its slash, decoded. ret_path: address->n_path + 1 bytes. -EINVAL with `why`. */
int origin_decoded_path(const struct address *address, char *ret_path, struct why *why);
