/* survey_origin [OPTION=VALUE...] URL [KIND [UNPACK]]: the plan of an origin, as its text, on stdout.
 *
 * Options: endpoint, region, addressing, credentials, ca_file, stall_s, n_tries, n_connections. "kind" as the first
 * word prints the kind of the URL alone. The digest and the progress that was told go to stderr. Exit 1 with the reason
 * on stderr and errno's number before it. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fetch/fetch_http.h"
#include "daemon/fetch/origin/origin.h"
#include "daemon/store/record/origin_kind.h"
#include "proto/base/cleanup.h"

static void on_progress(void *userdata, uint64_t n_files) {
        fprintf(stderr, "progress %" PRIu64 "\n", n_files);
}

static int fail(int error, const struct why *why) {
        fprintf(stderr, "%s: %s\n", strerrorname_np(-error), why->text);
        return EXIT_FAILURE;
}

static int take_option(const char *text, struct http_options *http, struct origin_options *origin) {
        const char *value = strchr(text, '=') + 1;
        size_t n_name = (size_t)(value - 1 - text);
        const struct {
                const char *name;
                const char **text;
                uint32_t *number;
        } options[] = {
                { "endpoint", &http->endpoint, NULL },
                { "region", &http->region, NULL },
                { "addressing", &http->addressing, NULL },
                { "origin", &http->origin, NULL },
                { "credentials", &http->credentials, NULL },
                { "ca_file", &http->ca_file, NULL },
                { "stall_s", NULL, &http->stall_s },
                { "n_tries", NULL, &http->n_tries },
                { "n_connections", NULL, &origin->n_connections },
                { "n_text_max", NULL, &origin->n_text_max },
        };

        for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
                if (strlen(options[i].name) != n_name || strncmp(text, options[i].name, n_name) != 0)
                        continue;
                if (options[i].text)
                        *options[i].text = value;
                else
                        *options[i].number = (uint32_t)strtoul(value, NULL, 10);
                return 0;
        }
        return -EINVAL;
}

/* Before the first "://" there may be no '=' in a URL. */
static int is_option(const char *text) {
        return text[strcspn(text, ":=")] == '=';
}

int main(int argc, char **argv) {
        struct origin_options options = { .kind = "auto", .unpack = "auto", .progress = on_progress };
        _cleanup_(http_freep) struct http *http = NULL;
        _cleanup_(plan_freep) struct plan *plan = NULL;
        struct http_options http_options = { 0 };
        _cleanup_(freep) char *text = NULL;
        struct why why = { 0 };
        const char *kind;
        size_t n_bytes;
        int only_kind, r;

        for (; argc > 1 && is_option(argv[1]); argc--, argv++)
                if (take_option(argv[1], &http_options, &options) < 0)
                        return fail(-EINVAL, &(struct why){ "no such option" });
        only_kind = argc > 1 && strcmp(argv[1], "kind") == 0;
        argc -= only_kind;
        argv += only_kind;
        if (argc < 2 || argc > 4) {
                fprintf(stderr, "usage: survey_origin [OPTION=VALUE...] [kind] URL [KIND [UNPACK]]\n");
                return 2;
        }
        options.url = argv[1];
        http_options.of_user = true;
        if (!http_options.origin && strstr(options.url, "://") &&
            (strncmp(options.url, "hf", 2) == 0 || strncmp(options.url, "gs", 2) == 0))
                http_options.origin = options.url; /* whose endpoint is meant */
        if (argc > 2)
                options.kind = argv[2];
        if (argc > 3)
                options.unpack = argv[3];
        if (only_kind) {
                r = origin_kind(options.url, options.kind, &kind, &why);
                return r < 0 ? fail(r, &why) : (puts(kind), EXIT_SUCCESS);
        }
        r = http_new(&http_options, &http, &why);
        if (r == 0)
                r = origin_survey(http, &options, &plan, &why);
        if (r == 0)
                r = plan_write(plan, &text, &n_bytes);
        if (r < 0)
                return fail(r, &why);
        fwrite(text, 1, n_bytes, stdout);
        fprintf(stderr, "digest %s\n", plan_digest(plan));
        return EXIT_SUCCESS;
}
