/* proto/http/request.h: the head of an HTTP request, as much of it as pages of our own need: those of dlctl web, and the
 * metrics of the daemon.
 *
 * Read by hand and not by libevent's evhttp: that of Debian 12 answers mistakes with pages of its own, cannot bound the
 * number of connections, and tells of a connection only when a request has come. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/symbol.h"

#define REQUEST_HEAD_MAX 8192u /* bytes: a browser sends a tenth of it */

enum request_method {
        REQUEST_GET,
        REQUEST_HEAD,
        REQUEST_OTHER,
};

struct request {
        enum request_method method;
        const char *path;  /* from the "/" on, without the query */
        const char *query; /* after the "?"; "" if there is none */
        const char *host;  /* the header, with its port */
        bool keep;         /* the connection may be used for another request */
};

/* How long the head at the beginning of `text` is, with the blank line that ends it; 0: it is not complete. */
size_t request_head_length(const char *text, size_t n) DLP_SYMBOL(request_head_length);

/* Reads a whole head. `text` has n bytes and a NUL after them; it is changed, and `ret_request` points into it. Returns
 * 0, or the status of HTTP that refuses it, with a sentence. */
int request_parse(char *text, size_t n, struct request *ret_request, const char **ret_why) DLP_SYMBOL(request_parse);

/* A number of the query, such as 17 of "since=17&errors=2"; `otherwise` if it is absent or no number. */
uint64_t request_number(const struct request *request, const char *name, uint64_t otherwise) DLP_SYMBOL(request_number);

/* Is it one of `names` (ended by NULL; an IPv6 address without brackets), whatever its port is? */
bool request_host_is(const struct request *request, const char *const *names) DLP_SYMBOL(request_host_is);
