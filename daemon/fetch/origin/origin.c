#include "daemon/fetch/origin/origin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/machine/machine_memory.h"
#include "daemon/fetch/fetch_http.h"
#include "daemon/fetch/origin/hub_pin.h"
#include "daemon/fetch/origin/origin_private.h"
#include "proto/base/bytes.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define TELL_FILES 1000u
#define TELL_NS    1000000000ull

static const struct {
        int (*survey)(struct origin_run *run, struct why *why);
        bool unpacks; /* with unpack = "auto", too */
} KINDS[N_ORIGIN_KINDS] = {
        [ORIGIN_MANIFEST] = { origin_manifest, false },
        [ORIGIN_LIST] = { origin_list, false },
        [ORIGIN_S3] = { origin_s3, false },
        [ORIGIN_GS] = { origin_s3, false },
        [ORIGIN_HF] = { origin_hf, false },
        [ORIGIN_FOLDER] = { origin_folder, false },
        [ORIGIN_ARCHIVE] = { origin_file, true },
        [ORIGIN_FILE] = { origin_file, false },
};

/* What is made of a text takes as much again as the text, and it came with room to grow. */
static uint64_t origin_text_max(const struct origin_options *options) {
        uint64_t part = memory_of_ours() / 8;

        if (options->n_text_max > 0)
                return options->n_text_max;
        return part < ORIGIN_TEXT_MAX ? part : ORIGIN_TEXT_MAX;
}

/* What some write or serve in place of text. NULL: it may be text. */
static const char *other_than_text(const struct http_answer *answer) {
        static const struct {
                const char *begin, *name;
        } OTHERS[] = {
                { "\x1f\x8b", "compressed (gzip)" },
                { "\x28\xb5\x2f\xfd", "compressed (zstd)" },
                { "\xfd"
                  "7zXZ",
                  "compressed (xz)" },
                { "BZh", "compressed (bzip2)" }, /* and a digit */
                { "PK\x03\x04", "an archive (zip)" },
                { "\xff\xfe", "UTF-16" },
                { "\xfe\xff", "UTF-16" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(OTHERS); i++)
                if (strncmp(answer->body, OTHERS[i].begin, strlen(OTHERS[i].begin)) == 0 &&
                    (OTHERS[i].begin[0] != 'B' || (answer->body[3] >= '1' && answer->body[3] <= '9')))
                        return OTHERS[i].name;
        return NULL;
}

int origin_text(struct origin_run *run, http_wanted wanted, struct http_answer *ret_answer, struct why *why) {
        uint64_t most = origin_text_max(run->options);
        const _Atomic bool *cancel = run->options->cancel;
        int r = wanted ? http_get_if(run->http, run->url, most, wanted, cancel, ret_answer, why)
                       : http_get(run->http, run->url, NULL, most, cancel, ret_answer, why);
        const char *other = r == 0 ? other_than_text(ret_answer) : NULL;
        char limit[BYTES_TEXT_MAX];

        if (other) {
                http_answer_fini(ret_answer);
                return why_set(why, -EINVAL,
                               "%s: it is %s, and a manifest or list must be plain text in UTF-8; put it there as that",
                               run->shown, other);
        }
        if (r == -EFBIG)
                why_set(why, r,
                        "%s: it has more than %s, the most that a manifest or list may have here (an eighth of the "
                        "memory, 2 GiB at most): make several datasets of it, or see why its server does not end",
                        run->shown, format_bytes(limit, most));
        return r;
}

#define LISTED_BYTES 100u /* of a plan, beside its texts (plan.h) */
#define PASSED_BYTES 8u   /* takes none; but no listing is endless */

int origin_count(struct origin_run *run, size_t n_bytes, struct why *why) {
        run->n_listed++;
        run->n_listed_bytes += n_bytes > 0 ? LISTED_BYTES + n_bytes : PASSED_BYTES;
        if (run->n_listed_bytes / 2 <= origin_text_max(run->options))
                return 0;
        return why_set(why, -EFBIG,
                       "%s: its listing takes more than a quarter of the memory (4 GiB at most), after %" PRIu64
                       " names: make several datasets of it, or see why its store does not end",
                       run->shown, run->n_listed);
}

/* Puts the origin's name before what is wrong with its files. */
static int origin_fail(const struct origin_run *run, int error, const struct why *inner, struct why *why) {
        return why_set(why, error, "%s: %s", run->shown, error == -ENOMEM ? "no memory" : inner->text);
}

static int origin_survey_kind(struct origin_run *run, enum origin_kind_of kind, struct plan **ret_plan,
                              struct why *why) {
        struct why inner = { 0 };
        int r = KINDS[kind].survey(run, why);

        if (r == 0 && !run->plan) {
                r = plan_finish(&run->found, &run->plan, &inner);
                if (r < 0)
                        origin_fail(run, r, &inner, why);
        }
        plan_free(run->found);
        if (r == 0)
                *ret_plan = run->plan;
        return r;
}

int origin_survey(struct http *http, const struct origin_options *options, struct plan **ret_plan, struct why *why) {
        struct origin_run run = { .options = options, .http = http, .url = options->url, .told_ns = clock_now_ns() };
        _cleanup_(freep) char *pinned = NULL;
        enum origin_kind_of kind = ORIGIN_FILE;
        int r = url_parse(options->url, &run.address, why);

        if (r == 0)
                r = origin_find_kind(&run.address, options->kind, &kind, why);
        if (r < 0)
                return r;
        if (strcmp(options->unpack, "auto") == 0)
                run.unpack = KINDS[kind].unpacks;
        else if (strcmp(options->unpack, "yes") == 0)
                run.unpack = true;
        else if (strcmp(options->unpack, "no") != 0)
                return why_set(why, -EINVAL, "unpack = \"%s\": write auto, yes or no", options->unpack);
        url_show(run.address.text, run.shown);
        if (run.address.scheme == URL_HF) {
                r = hub_pin(&run, &pinned, why);
                if (r < 0)
                        return r;
        }
        if (*run.address.rest) /* lines of it are named: "list.txt:17", not "list.txt?...:17" */
                run.shown[strlen(run.shown) - strlen("?...")] = '\0';
        return origin_survey_kind(&run, kind, ret_plan, why);
}

/* ---- shared -------------------------------------------------------------------------------------------------- */

int origin_progress(struct origin_run *run, uint64_t n_files, struct why *why) {
        const struct origin_options *options = run->options;
        uint64_t now_ns;

        if (options->cancel && *options->cancel)
                return why_set(why, -ECANCELED, "%s: canceled", run->shown);
        now_ns = clock_now_ns();
        if (n_files - run->n_told < TELL_FILES && now_ns - run->told_ns < TELL_NS)
                return 0;
        run->n_told = n_files;
        run->told_ns = now_ns;
        if (options->progress)
                options->progress(options->userdata, n_files);
        return 0;
}

int origin_add(struct origin_run *run, struct plan_file *file, const char *url, struct why *why) {
        struct why inner = { 0 };
        int r;

        file->urls = &url;
        file->n_urls = 1;
        file->unpack |= run->unpack && origin_is_archive(file->path);
        r = plan_add(&run->found, file, &inner);
        return r < 0 ? origin_fail(run, r, &inner, why) : 0;
}

/* ---- one document -------------------------------------------------------------------------------------------- */

void origin_local_etag(const struct stat *stat, char *ret_etag, size_t n_bytes) {
        snprintf(ret_etag, n_bytes, "\"%llx.%lx-%llx\"", (unsigned long long)stat->st_mtim.tv_sec,
                 (unsigned long)stat->st_mtim.tv_nsec, (unsigned long long)stat->st_size);
}

static int look_locally(const struct url *address, struct http_facts *ret_facts, struct why *why) {
        struct http_facts facts = { .has_ranges = true };
        char path[PATH_MAX], shown[URL_SHOWN_SIZE];
        struct stat found;
        int r = url_local_path(address, path, why);

        if (r < 0)
                return r;
        if (stat(path, &found) < 0)
                return why_errno(why, -errno, "%s", url_show(address->text, shown));
        if (!S_ISREG(found.st_mode))
                return why_set(why, -EINVAL, "%s is not a regular file", url_show(address->text, shown));
        facts.n_bytes = (uint64_t)found.st_size;
        origin_local_etag(&found, facts.etag, sizeof(facts.etag));
        *ret_facts = facts;
        return 0;
}

int origin_look(struct http *http, const char *url, const struct url *address, const _Atomic bool *cancel,
                struct http_facts *ret_facts, struct why *why) {
        char shown[URL_SHOWN_SIZE];
        struct http_facts facts;
        int r;

        if (address->scheme == URL_FILE)
                return look_locally(address, ret_facts, why);
        r = http_look(http, url, cancel, &facts, why);
        if (r < 0)
                return r;
        if (facts.is_html && !origin_ends_with(address, ".html") && !origin_ends_with(address, ".htm"))
                return why_set(why, -EINVAL,
                               "%s: the server answers with an HTML page instead of the file; does it ask for a login?",
                               url_show(address->text, shown));
        if (facts.n_bytes == UINT64_MAX)
                return why_set(why, -EINVAL,
                               "%s: the server does not say how long it is (no Content-Length); write a manifest (JSON "
                               "lines with path, size and urls) and name that as the origin",
                               url_show(address->text, shown));
        *ret_facts = facts;
        return 0;
}
