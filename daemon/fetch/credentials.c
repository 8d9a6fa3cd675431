#include "daemon/fetch/credentials.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/fetch/secret_file.h"
#include "daemon/fetch/url_line.h"
#include "daemon/store/record/url.h"
#include "proto/base/cleanup.h"

#define SERVERS_MAX 64u

struct credentials {
        struct secret_file file; /* cut into strings that the others point to */
        struct credentials_s3 s3;
        struct credentials_web servers[SERVERS_MAX];
        uint32_t n_servers;
};

/* ---- parsing -------------------------------------------------------------------------------------------------- */

struct parser {
        struct credentials *credentials;
        const char *path;
        struct secret_lines lines;
        bool is_profile;             /* within the profile that counts */
        struct credentials_web *web; /* within a server's section */
        struct why *why;
};

static const char *profile(void) {
        const char *name = getenv("AWS_PROFILE");

        return name && *name ? name : "default";
}

static int check_server(const struct parser *parser) {
        const struct credentials_web *web = parser->web;

        if (!web)
                return 0;
        if (web->token ? web->user || web->password : !web->user || !web->password)
                return why_set(parser->why, -EINVAL, "credentials %s: [%s] needs user and password, or token alone",
                               parser->path, web->server);
        return 0;
}

static int begin_section(struct parser *parser, char *name) {
        struct credentials *credentials = parser->credentials;
        char shown[URL_SHOWN_SIZE];
        int r = check_server(parser);

        if (r < 0)
                return r;
        parser->web = NULL;
        parser->is_profile = strcmp(name, profile()) == 0;
        if (!strstr(name, "://"))
                return 0;

        if (!url_same_server(name, name) || strchr(name, '@'))
                return why_set(parser->why, -EINVAL, "credentials %s:%u: [%s] is not a server: write https://host:port",
                               parser->path, parser->lines.number, url_show(name, shown));
        if (credentials->n_servers == SERVERS_MAX)
                return why_set(parser->why, -EINVAL, "credentials %s:%u: more than %u servers", parser->path,
                               parser->lines.number, SERVERS_MAX);
        parser->web = &credentials->servers[credentials->n_servers++];
        parser->web->server = name;
        return 0;
}

static int credentials_take_value(struct parser *parser, const char *key, const char *value) {
        struct credentials_s3 *s3 = &parser->credentials->s3;
        struct credentials_web *web = parser->web;
        const char **place = NULL;

        if (web)
                place = strcmp(key, "user") == 0       ? &web->user
                        : strcmp(key, "password") == 0 ? &web->password
                        : strcmp(key, "token") == 0    ? &web->token
                                                       : NULL;
        else if (parser->is_profile)
                place = strcasecmp(key, "aws_access_key_id") == 0       ? &s3->access_key
                        : strcasecmp(key, "aws_secret_access_key") == 0 ? &s3->secret_key
                        : strcasecmp(key, "aws_session_token") == 0     ? &s3->session_token
                                                                        : NULL;
        if (place)
                *place = value;
        else if (web) /* AWS' sections may hold what is nothing to us: region, role_arn */
                return why_set(parser->why, -EINVAL,
                               "credentials %s:%u: unknown key in [%s]: there are user, password and token",
                               parser->path, parser->lines.number, web->server);
        return 0;
}

static int credentials_take_line(struct parser *parser, enum secret_line kind) {
        const struct secret_lines *lines = &parser->lines;

        if (kind == SECRET_SECTION)
                return begin_section(parser, lines->key);
        if (kind == SECRET_VALUE)
                return credentials_take_value(parser, lines->key, lines->value);
        return why_set(parser->why, -EINVAL,
                       *lines->key == '[' ? "credentials %s:%u: a section's name ends with ]"
                                          : "credentials %s:%u: neither [section] nor key = value",
                       parser->path, lines->number);
}

static int credentials_parse(struct credentials *credentials, const char *path, struct why *why) {
        struct parser parser = {
                .credentials = credentials, .path = path, .lines.rest = credentials->file.text, .why = why
        };
        const struct credentials_s3 *s3 = &credentials->s3;
        enum secret_line kind;

        while ((kind = secret_lines_next(&parser.lines)) != SECRET_END) {
                int r = credentials_take_line(&parser, kind);

                if (r < 0)
                        return r;
        }
        if (!s3->access_key != !s3->secret_key)
                return why_set(why, -EINVAL,
                               "credentials %s: [%s] needs both aws_access_key_id and aws_secret_access_key", path,
                               profile());
        if (!s3->access_key && credentials->n_servers == 0 && !parser.web)
                return why_set(why, -EINVAL, "credentials %s: neither keys in [%s] nor a section of a server in it",
                               path, profile());
        return check_server(&parser);
}

int credentials_read(const char *path, struct credentials **ret_credentials, struct why *why) {
        _cleanup_(credentials_freep) struct credentials *credentials = calloc(1, sizeof(*credentials));
        int r;

        if (!credentials)
                return -ENOMEM;
        r = secret_file_read(path, &credentials->file, why);
        if (r < 0)
                return r;
        r = credentials_parse(credentials, path, why);
        if (r < 0)
                return r;

        *ret_credentials = TAKE_PTR(credentials);
        return 0;
}

void credentials_free(struct credentials *credentials) {
        if (!credentials)
                return;
        secret_file_fini(&credentials->file);
        free(credentials);
}

void credentials_freep(struct credentials **credentials) {
        credentials_free(*credentials);
}

const struct credentials_s3 *credentials_s3(const struct credentials *credentials) {
        const struct credentials_s3 *s3 = credentials ? &credentials->s3 : NULL;

        return s3 && s3->access_key && *s3->access_key && s3->secret_key ? s3 : NULL;
}

const struct credentials_web *credentials_web(const struct credentials *credentials, const char *url) {
        if (!credentials)
                return NULL;
        for (uint32_t i = 0; i < credentials->n_servers; i++)
                if (url_same_server(credentials->servers[i].server, url))
                        return &credentials->servers[i];
        return NULL;
}
