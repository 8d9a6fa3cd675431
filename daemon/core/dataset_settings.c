#include "daemon/core/dataset_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/threads/fair_queue.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/scanner.h"
#include "daemon/store/record/origin_kind.h"
#include "daemon/store/record/record_place.h"
#include "daemon/store/record/record_steps.h"
#include "proto/base/cleanup.h"
#include "proto/base/path_url.h"

static int check_format(const char *text, struct why *why) {
        const struct format *found;

        return strcmp(text, FORMAT_AUTO) == 0 ? 0 : format_find(text, &found, why);
}

/* Checks the text alone: only the staging program contacts the origin, the daemon never does. A password is refused,
 * because everybody can read this file and its values are shown. */
static int check_dataset_path(const char *text, struct why *why) {
        return text[0] == '/' || path_is_url(text)
                       ? 0
                       : why_set(why, -EINVAL,
                                 "\"%s\" is not allowed; write an absolute path, or a URL that begins with " PATH_URL_SCHEMES,
                                 text);
}

static int check_origin(const char *text, struct why *why) {
        struct url url;

        int r = url_parse(text, &url, why);

        if (r == 0 && strchr(text, ' ') && (!url_is_plain(url.scheme) || memchr(url.host, ' ', url.n_host)))
                return why_set(why, -EINVAL, "\"%s\" has a blank%s", text,
                               url_is_plain(url.scheme) ? " in the bucket's name" : "; write it as %20");
        return r;
}

static int check_endpoint(const char *text, struct why *why) {
        if (url_is_endpoint(text))
                return 0;
        return why_set(why, -EINVAL, "\"%s\" is not an endpoint; write https://HOST or https://HOST:PORT", text);
}

static int check_mirror(const char *text, struct why *why) {
        struct url url;
        int r = url_parse(text, &url, why);

        return r < 0 || url.scheme == URL_HTTP || url.scheme == URL_HTTPS
                       ? r
                       : why_set(why, -EINVAL, "\"%s\" is not a web server; write http://HOST/FOLDER", text);
}

static int check_allow(const char *text, struct why *why) {
        struct groups groups;
        int r = groups_parse(text, &groups, why);

        if (r < 0)
                return r;
        r = groups.n_groups > 0 ? 0 : why_set(why, -EINVAL, "names no group; leave the key out to allow everybody");
        groups_fini(&groups);
        return r;
}

#define SETTING(key, type, ...)                                                                                        \
        { .name = #key, .kind = SETTING_##type, .offset = offsetof(struct dataset_setting, key), __VA_ARGS__ },
const struct setting DATASET_SETTINGS[N_DATASET_SETTINGS] = {
#include "daemon/core/dataset_rows.h"
};

/* Do URL and kind match? The target of a file: URL is not checked: it may be on another machine's disk, and a check
 * might hang. */
static int dataset_settings_check_kind(const struct dataset_setting *dataset, struct why *why) {
        bool is_local = strncmp(dataset->origin, "file:", 5) == 0;
        struct why reason;
        const char *kind;
        int r;

        if (is_local && strcmp(dataset->origin_kind, "auto") == 0)
                return 0;
        r = origin_kind(dataset->origin, dataset->origin_kind, &kind, &reason);
        return r < 0 ? why_set(why, r, "origin_kind: %s", reason.text) : 0;
}

/* Does its format, if it is named, take what is said of it? */
static int dataset_settings_check_options(const struct dataset_setting *dataset, struct why *why) {
        struct format_options parsed;
        const struct format *format;
        int r;

        if (strcmp(dataset->format, FORMAT_AUTO) == 0)
                return 0;
        r = format_find(dataset->format, &format, why);
        if (r == 0)
                r = format_options_parse(dataset->options, format, &parsed, why);
        if (r == 0)
                format_options_fini(&parsed);
        return r;
}

static int check_staged(const struct dataset_setting *dataset, struct why *why) {
        _cleanup_(freep) char *stream = NULL, *merge = NULL;
        struct place place;
        struct why reason;
        int r;

        if (strncmp(dataset->format, SCANNER_PREFIX, strlen(SCANNER_PREFIX)) == 0)
                return why_set(why, -EINVAL,
                               "format: a dataset with an origin is indexed where it is staged, and a plug-in's format "
                               "by the daemon; leave out origin, or stage the files by other means");
        if (format_options_value(dataset->options, FORMAT_STREAM, &stream) < 0 ||
            format_options_value(dataset->options, FORMAT_MERGE, &merge) < 0)
                return why_errno(why, -ENOMEM, "options");
        if (format_option_is_yes(stream))
                return why_set(why, -EINVAL,
                               "stream: a dataset with an origin is served when it is complete; leave out "
                               "stream or origin");
        if (merge)
                return why_set(why, -EINVAL,
                               "merge: a dataset with an origin is a folder, and with merge the path names archives; "
                               "leave out merge or origin");
        r = place_init(&place, dataset->path, &reason);
        return r < 0 ? why_set(why, r, "path: %s", reason.text) : dataset_settings_check_kind(dataset, why);
}

int dataset_setting_take(struct dataset_setting *dataset, const char *key, const char *text, struct why *why) {
        const struct setting *row = setting_find(DATASET_SETTINGS, N_DATASET_SETTINGS, key);

        return row ? setting_parse(row, dataset, text, why)
                   : format_options_add(&dataset->options, format_option_find(key), text, why);
}

int dataset_setting_complete(struct dataset_setting *dataset, struct why *why) {
        int r;

        if (!dataset->path)
                return why_set(why, -EINVAL, "path: is missing; write an absolute path");
        r = settings_fill(DATASET_SETTINGS, N_DATASET_SETTINGS, dataset, why);
        if (r == 0 && !dataset->options)
                dataset->options = strdup("");
        if (r == 0 && !dataset->options)
                r = why_errno(why, -ENOMEM, "options");
        if (r == 0)
                r = dataset_settings_check_options(dataset, why);
        if (r == 0)
                r = groups_parse(dataset->allow, &dataset->groups, why);
        return r < 0 || !*dataset->origin ? r : check_staged(dataset, why);
}

void dataset_setting_fini(struct dataset_setting *dataset) {
        free(dataset->name);
        free(dataset->options);
        settings_free_texts(DATASET_SETTINGS, N_DATASET_SETTINGS, dataset);
        groups_fini(&dataset->groups);
        *dataset = (struct dataset_setting){ 0 };
}
