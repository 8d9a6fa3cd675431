#include "proto/http/request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEADERS_MAX 64

size_t request_head_length(const char *text, size_t n) {
        for (const char *end = text; (end = memchr(end, '\n', n - (size_t)(end - text))); end++) {
                size_t place = (size_t)(end - text) + 1;

                if (place < n && text[place] == '\n')
                        return place + 1;
                if (place + 1 < n && text[place] == '\r' && text[place + 1] == '\n')
                        return place + 2;
        }
        return 0;
}

static int request_refuse(const char **ret_why, int status, const char *why) {
        *ret_why = why;
        return status;
}

/* Cuts the next line off, without its end. NULL: there is none. */
static char *request_next_line(char **text) {
        char *line = *text, *end = strchr(line, '\n');

        if (!end)
                return NULL;
        *text = end + 1;
        if (end > line && end[-1] == '\r')
                end--;
        *end = '\0';
        return line;
}

static int parse_target(char *target, struct request *request, const char **ret_why) {
        char *query;

        if (target[0] != '/')
                return request_refuse(ret_why, 400, "The request has to name a path that begins with /.");
        for (const char *c = target; *c; c++)
                if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
                        return request_refuse(ret_why, 400, "The request's path has characters that no path has.");
        query = strchr(target, '?');
        if (query)
                *query++ = '\0';
        request->path = target;
        request->query = query ? query : "";
        return 0;
}

/* "GET /status.json HTTP/1.1" */
static int parse_first_line(char *line, struct request *request, const char **ret_why) {
        char *target = line ? strchr(line, ' ') : NULL, *version = target ? strrchr(target + 1, ' ') : NULL;

        if (!version)
                return request_refuse(ret_why, 400, "This is not a request of HTTP.");
        *target++ = '\0';
        *version++ = '\0';
        if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
                return request_refuse(ret_why, 505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.");
        request->keep = version[7] == '1';
        request->method = strcmp(line, "GET") == 0    ? REQUEST_GET
                          : strcmp(line, "HEAD") == 0 ? REQUEST_HEAD
                                                      : REQUEST_OTHER;
        return parse_target(target, request, ret_why);
}

static bool request_is_blank(char c) {
        return c == ' ' || c == '\t';
}

/* Of a header, what lies between its blanks. */
static char *request_trimmed(char *value) {
        char *end;

        while (request_is_blank(*value))
                value++;
        end = value + strlen(value);
        while (end > value && request_is_blank(end[-1]))
                end--;
        *end = '\0';
        return value;
}

static int parse_header(char *line, struct request *request, const char **ret_why) {
        char *colon = strchr(line, ':');
        const char *value;

        if (!colon || colon == line || request_is_blank(colon[-1]) || request_is_blank(line[0]))
                return request_refuse(ret_why, 400, "A header of the request has no name.");
        *colon = '\0';
        value = request_trimmed(colon + 1);
        if (strcasecmp(line, "Host") == 0) {
                if (request->host)
                        return request_refuse(ret_why, 400, "The request names two hosts.");
                request->host = value;
        } else if (strcasecmp(line, "Connection") == 0) {
                request->keep = request->keep && strcasecmp(value, "close") != 0;
        } else if (strcasecmp(line, "Transfer-Encoding") == 0 ||
                   (strcasecmp(line, "Content-Length") == 0 && strcmp(value, "0") != 0)) {
                return request_refuse(ret_why, 413, "A request here has no content: GET and HEAD need none.");
        }
        return 0;
}

int request_parse(char *text, size_t n, struct request *ret_request, const char **ret_why) {
        struct request request = { .host = NULL };
        char *line;
        int r;

        if (memchr(text, '\0', n))
                return request_refuse(ret_why, 400, "The request has a NUL.");
        r = parse_first_line(request_next_line(&text), &request, ret_why);
        for (int i = 0; r == 0 && (line = request_next_line(&text)) && *line; i++) {
                if (i == HEADERS_MAX)
                        return request_refuse(ret_why, 431, "The request has too many headers: 64 are allowed.");
                r = parse_header(line, &request, ret_why);
        }
        if (r != 0)
                return r;
        if (!request.host)
                return request_refuse(ret_why, 400, "The request does not say which host it wants (header Host).");
        *ret_request = request;
        return 0;
}

uint64_t request_number(const struct request *request, const char *name, uint64_t otherwise) {
        size_t n = strlen(name);

        for (const char *part = request->query; *part; part += *part == '&') {
                size_t length = strcspn(part, "&");

                if (length > n + 1 && length <= n + 20 && strncmp(part, name, n) == 0 && part[n] == '=' &&
                    strspn(part + n + 1, "0123456789") == length - n - 1)
                        return strtoull(part + n + 1, NULL, 10);
                part += length;
        }
        return otherwise;
}

bool request_host_is(const struct request *request, const char *const *names) {
        const char *host = request->host + (request->host[0] == '[');
        size_t n = request->host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");
        const char *rest = host + n;

        if (request->host[0] == '[' && *rest++ != ']')
                return false;
        if (*rest != '\0' && (*rest != ':' || rest[1 + strspn(rest + 1, "0123456789")] != '\0'))
                return false;
        for (; *names; names++)
                if (strlen(*names) == n && strncasecmp(*names, host, n) == 0)
                        return true;
        return false;
}
