#include "daemon/fetch/url_line.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/fetch/late/curl_late.h"

static bool must_be_encoded(unsigned char byte) {
        return byte <= ' ' || byte >= 0x7f || strchr("\"<>\\^`{|}", byte);
}

/* curl_url() would encode blanks and what is not ASCII, and refuse the rest. */
char *url_line(const char *url, const char *query) {
        static const char DIGITS[] = "0123456789ABCDEF";
        const char *slashes = strstr(url, "://");
        const char *path = slashes ? slashes + 3 + strcspn(slashes + 3, "/?#") : url;
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

struct url_server {
        char *scheme, *host, *port; /* libcurl's memory */
};

static void url_line_server_fini(struct url_server *server) {
        curl_free(server->scheme);
        curl_free(server->host);
        curl_free(server->port);
}

/* By libcurl's parser, which also sends: keys must not go to a server that a second parser takes for another one. */
static bool server_of(const char *text, struct url_server *server) {
        CURLU *url = curl_url();
        bool found = url && curl_url_set(url, CURLUPART_URL, text, CURLU_ALLOW_SPACE) == CURLUE_OK &&
                     curl_url_get(url, CURLUPART_SCHEME, &server->scheme, 0) == CURLUE_OK &&
                     strncmp(server->scheme, "http", 4) == 0 &&
                     curl_url_get(url, CURLUPART_HOST, &server->host, 0) == CURLUE_OK && *server->host &&
                     curl_url_get(url, CURLUPART_PORT, &server->port, CURLU_DEFAULT_PORT) == CURLUE_OK;

        curl_url_cleanup(url);
        return found;
}

bool url_same_server(const char *one, const char *other) {
        struct url_server a = { 0 }, b = { 0 };
        bool are_same = server_of(one, &a) && server_of(other, &b) && strcmp(a.scheme, b.scheme) == 0 &&
                        strcasecmp(a.host, b.host) == 0 && strcmp(a.port, b.port) == 0;

        url_line_server_fini(&a);
        url_line_server_fini(&b);
        return are_same;
}
