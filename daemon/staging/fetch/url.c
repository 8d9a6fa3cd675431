#include "daemon/staging/fetch/url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
        const char *text;
        enum url_scheme scheme;
} SCHEMES[] = {
        { "http://", URL_HTTP },
        { "https://", URL_HTTPS },
        { "file://", URL_FILE },
        { "s3://", URL_S3 },
};

#define N_SCHEMES (sizeof(SCHEMES) / sizeof(SCHEMES[0]))

/* What a URL has behind its scheme: host, or bucket. */
static size_t authority_bytes(const char *authority) {
        return strcspn(authority, "/?#");
}

/* The index in SCHEMES, or -1. */
static int find_scheme(const char *url) {
        for (size_t i = 0; i < N_SCHEMES; i++)
                if (strncasecmp(url, SCHEMES[i].text, strlen(SCHEMES[i].text)) == 0)
                        return (int)i;
        return -1;
}

int url_scheme(const char *url, enum url_scheme *ret_scheme, struct why *why) {
        char shown[URL_SHOWN_SIZE];
        int idx = find_scheme(url);
        const char *authority;

        if (idx < 0)
                return why_set(why, -EINVAL, "\"%s\" is no URL of http://, https://, s3:// or file://",
                               url_show(url, shown));
        if (strlen(url) > URL_BYTES_MAX)
                return why_set(why, -EINVAL, "%s: longer than %u bytes", url_show(url, shown), URL_BYTES_MAX);
        for (const char *at = url; *at; at++)
                if ((unsigned char)*at < ' ' || *at == 0x7f)
                        return why_set(why, -EINVAL, "%s: there is a control character in it", url_show(url, shown));

        authority = url + strlen(SCHEMES[idx].text);
        if (SCHEMES[idx].scheme == URL_FILE) {
                if (*authority != '/' && strncasecmp(authority, "localhost/", 10) != 0)
                        return why_set(why, -EINVAL, "%s: write file:///path: a file is on this machine",
                                       url_show(url, shown));
        } else if (authority_bytes(authority) == 0) {
                return why_set(why, -EINVAL, "%s: there is no %s in it", url_show(url, shown),
                               SCHEMES[idx].scheme == URL_S3 ? "bucket" : "host");
        }

        *ret_scheme = SCHEMES[idx].scheme;
        return 0;
}

/* The last '@' of the authority ends user and password, as libcurl sees it. */
static const char *behind_user(const char *authority, size_t n_bytes) {
        const char *at = memrchr(authority, '@', n_bytes);

        return at ? at + 1 : authority;
}

const char *url_show(const char *url, char shown[URL_SHOWN_SIZE]) {
        int idx = find_scheme(url);
        size_t n_scheme = idx < 0 ? 0 : strlen(SCHEMES[idx].text), n_authority, n_path, n_room;
        const char *host, *path;
        bool has_more;

        /* What has no scheme that is known may still hold a password: "ftp://me:secret@host". */
        if (idx < 0) {
                const char *slashes = strstr(url, "://");

                n_scheme = slashes ? (size_t)(slashes - url) + 3 : 0;
        }
        n_authority = authority_bytes(url + n_scheme);
        host = behind_user(url + n_scheme, n_authority);
        path = url + n_scheme + n_authority;
        n_path = idx >= 0 && SCHEMES[idx].scheme == URL_S3 ? strlen(path) : strcspn(path, "?#");
        has_more = path[n_path] != '\0';

        n_authority = (size_t)(path - host);
        n_room = URL_SHOWN_SIZE - 64;
        if (n_scheme + n_authority > n_room)
                snprintf(shown, URL_SHOWN_SIZE, "%.*s...", (int)n_room, url);
        else if (n_scheme + n_authority + n_path <= n_room)
                snprintf(shown, URL_SHOWN_SIZE, "%.*s%.*s%.*s%s", (int)n_scheme, url, (int)n_authority, host,
                         (int)n_path, path, has_more ? "?..." : "");
        else /* the end is the file's name: that tells more than the middle */
                snprintf(shown, URL_SHOWN_SIZE, "%.*s%.*s/...%.*s%s", (int)n_scheme, url, (int)n_authority, host,
                         (int)(n_room - n_scheme - n_authority), path + n_path - (n_room - n_scheme - n_authority),
                         has_more ? "?..." : "");
        return shown;
}

static bool must_be_encoded(unsigned char byte) {
        return byte <= ' ' || byte >= 0x7f || strchr("\"<>\\^`{|}", byte);
}

char *url_line(const char *url, const char *query) {
        static const char DIGITS[] = "0123456789ABCDEF";
        const char *slashes = strstr(url, "://");
        const char *path = slashes ? slashes + 3 + authority_bytes(slashes + 3) : url;
        size_t n_bytes = (size_t)(path - url), n_path = strcspn(path, "#");
        bool has_query = memchr(path, '?', n_path);
        char *line = malloc(n_bytes + 3 * n_path + (query ? strlen(query) + 1 : 0) + 1);

        if (!line)
                return NULL;

        memcpy(line, url, n_bytes);
        for (size_t i = 0; i < n_path; i++) {
                unsigned char byte = (unsigned char)path[i];

                if (must_be_encoded(byte)) {
                        line[n_bytes++] = '%';
                        line[n_bytes++] = DIGITS[byte >> 4];
                        line[n_bytes++] = DIGITS[byte & 15];
                } else {
                        line[n_bytes++] = (char)byte;
                }
        }
        if (query && *query) {
                line[n_bytes++] = has_query ? '&' : '?';
                memcpy(line + n_bytes, query, strlen(query));
                n_bytes += strlen(query);
        }
        line[n_bytes] = '\0';
        return line;
}

struct server {
        enum url_scheme scheme;
        const char *host;
        size_t n_host;
        unsigned long port;
};

static bool server_of(const char *url, struct server *ret_server) {
        struct server server = { 0 };
        int idx = find_scheme(url);
        const char *authority, *end, *colon;

        if (idx < 0 || (SCHEMES[idx].scheme != URL_HTTP && SCHEMES[idx].scheme != URL_HTTPS))
                return false;
        server.scheme = SCHEMES[idx].scheme;
        authority = url + strlen(SCHEMES[idx].text);
        end = authority + authority_bytes(authority);
        server.host = behind_user(authority, (size_t)(end - authority));
        server.n_host = (size_t)(end - server.host);
        server.port = server.scheme == URL_HTTPS ? 443 : 80;

        colon = memrchr(server.host, ':', server.n_host);
        if (colon && !memchr(colon, ']', (size_t)(end - colon))) { /* not one of an IPv6 address */
                if (colon + 1 < end)
                        server.port = strtoul(colon + 1, NULL, 10);
                server.n_host = (size_t)(colon - server.host);
        }
        *ret_server = server;
        return server.n_host > 0;
}

bool url_same_server(const char *one, const char *other) {
        struct server a, b;

        return server_of(one, &a) && server_of(other, &b) && a.scheme == b.scheme && a.port == b.port &&
               a.n_host == b.n_host && strncasecmp(a.host, b.host, a.n_host) == 0;
}
