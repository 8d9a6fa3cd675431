#include "daemon/fetch/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/fetch/url_line.h"
#include "daemon/store/record/url.h"
#include "proto/base/cleanup.h"

#define FILE_BYTES_MAX 65536u
#define SERVERS_MAX    64u

struct credentials {
        char *text; /* the file, cut into strings that the others point to */
        size_t n_bytes;
        struct credentials_s3 s3;
        struct credentials_web servers[SERVERS_MAX];
        uint32_t n_servers;
};

/* ---- reading -------------------------------------------------------------------------------------------------- */

static int credentials_check_file(int fd, const char *path, struct stat *ret_stat, struct why *why) {
        if (fstat(fd, ret_stat) < 0)
                return why_errno(why, -errno, "credentials %s", path);
        if (!S_ISREG(ret_stat->st_mode))
                return why_set(why, -EINVAL, "credentials %s: not a regular file", path);
        if (ret_stat->st_uid != geteuid() && ret_stat->st_uid != 0)
                return why_set(why, -EACCES, "credentials %s: belongs to user %u; it must be yours or root's", path,
                               ret_stat->st_uid);
        if ((ret_stat->st_mode & 07) || (ret_stat->st_mode & 030) ||
            ((ret_stat->st_mode & 040) && ret_stat->st_uid != 0))
                return why_set(why, -EACCES, "credentials %s: others may read or write it (mode %04o): chmod 600 %s",
                               path, ret_stat->st_mode & 07777, path);
        if (ret_stat->st_size > (off_t)FILE_BYTES_MAX)
                return why_set(why, -EINVAL, "credentials %s: larger than 64 KiB", path);
        return 0;
}

/* The descriptor that was checked is the one that is read, so it does not matter if the name changes in between. */
static int credentials_read_file(const char *path, struct credentials *credentials, struct why *why) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        struct stat stat;
        int r;

        if (fd < 0)
                return why_errno(why, -errno, "credentials %s", path);
        r = credentials_check_file(fd, path, &stat, why);
        if (r < 0)
                return r;

        credentials->text = malloc((size_t)stat.st_size + 1);
        if (!credentials->text)
                return -ENOMEM;
        credentials->n_bytes = (size_t)stat.st_size;
        r = disk_read_at(fd, credentials->text, credentials->n_bytes, 0);
        if (r < 0)
                return why_errno(why, r, "credentials %s", path);
        credentials->text[credentials->n_bytes] = '\0';
        if (memchr(credentials->text, '\0', credentials->n_bytes))
                return why_set(why, -EINVAL, "credentials %s: not a text file", path);
        return 0;
}

/* ---- parsing -------------------------------------------------------------------------------------------------- */

struct parser {
        struct credentials *credentials;
        const char *path;
        unsigned int line;
        bool is_profile;             /* within the profile that counts */
        struct credentials_web *web; /* within a server's section */
        struct why *why;
};

static char *credentials_trimmed(char *text) {
        char *end;

        text += strspn(text, " \t\r");
        end = text + strlen(text);
        while (end > text && strchr(" \t\r", end[-1]))
                *--end = '\0';
        return text;
}

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
                               parser->path, parser->line, url_show(name, shown));
        if (credentials->n_servers == SERVERS_MAX)
                return why_set(parser->why, -EINVAL, "credentials %s:%u: more than %u servers", parser->path,
                               parser->line, SERVERS_MAX);
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
                               parser->path, parser->line, web->server);
        return 0;
}

static int credentials_parse_line(struct parser *parser, char *line) {
        char *equals, *end;

        line = credentials_trimmed(line);
        if (!*line || *line == '#' || *line == ';')
                return 0;
        if (*line == '[') {
                end = strrchr(line, ']'); /* the last: a server's name may be [http://[::1]:8080] */
                if (!end || end[1])
                        return why_set(parser->why, -EINVAL, "credentials %s:%u: a section's name ends with ]",
                                       parser->path, parser->line);
                *end = '\0';
                return begin_section(parser, credentials_trimmed(line + 1));
        }
        equals = strchr(line, '=');
        if (!equals)
                return why_set(parser->why, -EINVAL, "credentials %s:%u: neither [section] nor key = value",
                               parser->path, parser->line);
        *equals = '\0';
        return credentials_take_value(parser, credentials_trimmed(line), credentials_trimmed(equals + 1));
}

static int credentials_parse(struct credentials *credentials, const char *path, struct why *why) {
        struct parser parser = { .credentials = credentials, .path = path, .why = why };
        const struct credentials_s3 *s3 = &credentials->s3;
        char *rest = credentials->text, *line;

        while ((line = strsep(&rest, "\n"))) {
                int r;

                parser.line++;
                r = credentials_parse_line(&parser, line);
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
        r = credentials_read_file(path, credentials, why);
        if (r < 0)
                return r;
        r = credentials_parse(credentials, path, why);
        if (r < 0)
                return r;

        *ret_credentials = TAKE_PTR(credentials);
        return 0;
}

/* ---- the environment ------------------------------------------------------------------------------------------ */

static const char *credentials_environment(const char *name) {
        const char *value = getenv(name);

        return value && *value ? value : NULL;
}

int credentials_of_environment(struct credentials **ret_credentials) {
        struct credentials *credentials = calloc(1, sizeof(*credentials));

        if (!credentials)
                return -ENOMEM;
        credentials->s3 = (struct credentials_s3){ credentials_environment("AWS_ACCESS_KEY_ID"),
                                                   credentials_environment("AWS_SECRET_ACCESS_KEY"),
                                                   credentials_environment("AWS_SESSION_TOKEN") };
        *ret_credentials = credentials;
        return 0;
}

void credentials_free(struct credentials *credentials) {
        if (!credentials)
                return;
        if (credentials->text)
                explicit_bzero(credentials->text, credentials->n_bytes);
        free(credentials->text);
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
