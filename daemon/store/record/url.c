#include "daemon/store/record/url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/text.h"

static const char *const SCHEMES[N_URL_SCHEMES] = {
        [URL_HTTP] = "http", [URL_HTTPS] = "https", [URL_FILE] = "file",
        [URL_S3] = "s3",     [URL_GS] = "gs",       [URL_HF] = "hf",
};

/* ---- taking apart -------------------------------------------------------------------------------------------- */

const char *url_scheme_name(enum url_scheme scheme) {
        return SCHEMES[scheme];
}

bool url_is_plain(enum url_scheme scheme) {
        return scheme == URL_S3 || scheme == URL_GS || scheme == URL_HF;
}

/* Cuts any text into the parts that a URL has, be they as they may. `behind_scheme`: of what has none, the text. */
static void url_split(const char *text, const char *behind_scheme, struct url *ret_url) {
        struct url url = { .text = text, .scheme = N_URL_SCHEMES };
        const char *at;

        for (enum url_scheme scheme = 0; scheme < N_URL_SCHEMES; scheme++)
                if (behind_scheme == text + strlen(SCHEMES[scheme]) + 3 &&
                    strncasecmp(text, SCHEMES[scheme], strlen(SCHEMES[scheme])) == 0)
                        url.scheme = scheme;
        url.host = behind_scheme;
        url.n_host = strcspn(url.host, "/?#");
        url.path = url.host + url.n_host;
        url.n_path = url_is_plain(url.scheme) ? strlen(url.path) : strcspn(url.path, "?#");
        url.rest = url.path + url.n_path;
        at = memrchr(url.host, '@', url.n_host); /* the last one ends user and password, as libcurl sees it */
        if (at) {
                url.n_host -= (size_t)(at + 1 - url.host);
                url.host = at + 1;
        }
        *ret_url = url;
}

const char *url_show(const char *text, char shown[URL_SHOWN_SIZE]) {
        const char *slashes = strstr(text, "://");
        size_t n_scheme = slashes ? (size_t)(slashes + 3 - text) : 0, n_room = URL_SHOWN_SIZE - 64;
        struct url url;

        url_split(text, text + n_scheme, &url);
        if (n_scheme + url.n_host > n_room)
                snprintf(shown, URL_SHOWN_SIZE, "%.*s...", (int)(n_scheme < n_room ? n_scheme : n_room), text);
        else if (n_scheme + url.n_host + url.n_path <= n_room)
                snprintf(shown, URL_SHOWN_SIZE, "%.*s%.*s%.*s%s", (int)n_scheme, text, (int)url.n_host, url.host,
                         (int)url.n_path, url.path, *url.rest ? "?..." : "");
        else { /* the end is the file's name: that tells more than the middle */
                size_t n_end = n_room - n_scheme - url.n_host;

                snprintf(shown, URL_SHOWN_SIZE, "%.*s%.*s/...%.*s%s", (int)n_scheme, text, (int)url.n_host, url.host,
                         (int)n_end, url.rest - n_end, *url.rest ? "?..." : "");
        }
        return shown;
}

static int url_refuse(struct why *why, const char *text, const char *what) {
        char shown[URL_SHOWN_SIZE];

        return why_set(why, -EINVAL, "URL \"%s\" %s", url_show(text, shown), what);
}

static int url_check(const struct url *url, struct why *why) {
        if (memchr(url->text, '@', (size_t)(url->path - url->text)))
                return url_refuse(why, url->text,
                                  "has a user in it; names and passwords belong in the dataset's credentials file");
        if (url->scheme == N_URL_SCHEMES)
                return url_refuse(why, url->text, "has an unknown scheme; it must be http, https, s3, gs, hf or file");
        if (url->scheme == URL_FILE) {
                if (url->n_host != 0 && !(url->n_host == 9 && strncasecmp(url->host, "localhost", 9) == 0))
                        return url_refuse(why, url->text, "names another host; write file:///path");
                if (url->n_path == 0)
                        return url_refuse(why, url->text, "has no path; write file:///path");
        } else if (url->n_host == 0) {
                return url_refuse(why, url->text,
                                  url->scheme == URL_S3   ? "has no bucket; write s3://bucket/key"
                                  : url->scheme == URL_GS ? "has no bucket; write gs://bucket/key"
                                  : url->scheme == URL_HF ? "has no repository; write hf://datasets/ORG/NAME"
                                                          : "has no host");
        }
        return 0;
}

int url_parse(const char *text, struct url *ret_url, struct why *why) {
        const char *slashes = strstr(text, "://");
        char shown[URL_SHOWN_SIZE];
        struct url url;
        int r;

        if (strnlen(text, URL_BYTES_MAX + 1) > URL_BYTES_MAX)
                return why_set(why, -EINVAL, "URL \"%s\" is longer than %u bytes", url_show(text, shown),
                               URL_BYTES_MAX);
        if (!text_is_printable(text))
                return url_refuse(why, text, "has control characters in it, or bytes that are not UTF-8");
        if (!slashes) /* what stands beside an '@' may be a password */
                return why_set(why, -EINVAL,
                               "\"%s\" is not a URL; write http://, https://, s3://, gs://, hf:// or file:///",
                               strchr(text, '@') ? "..." : url_show(text, shown));
        url_split(text, slashes + 3, &url);
        r = url_check(&url, why);
        if (r == 0)
                *ret_url = url;
        return r;
}

bool url_is_endpoint(const char *text) {
        struct url url;

        return url_parse(text, &url, NULL) == 0 && (url.scheme == URL_HTTP || url.scheme == URL_HTTPS) &&
               !strpbrk(text, " @?#");
}

/* ---- percent-encoding ---------------------------------------------------------------------------------------- */

/* RFC 3986's unreserved characters, and nothing else: what S3's signatures are made of. */
static bool is_unreserved(unsigned char byte) {
        return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
               byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

static size_t url_encode(const char *plain, bool keep_slash, char *ret_encoded) {
        static const char DIGITS[] = "0123456789ABCDEF";
        char *at = ret_encoded;

        for (; *plain; plain++) {
                unsigned char byte = (unsigned char)*plain;

                if (is_unreserved(byte) || (byte == '/' && keep_slash)) {
                        *at++ = (char)byte;
                        continue;
                }
                *at++ = '%';
                *at++ = DIGITS[byte >> 4];
                *at++ = DIGITS[byte & 15];
        }
        *at = '\0';
        return (size_t)(at - ret_encoded);
}

size_t url_encode_value(const char *text, char *ret_encoded) {
        return url_encode(text, false, ret_encoded);
}

size_t url_encode_path(const char *text, char *ret_encoded) {
        return url_encode(text, true, ret_encoded);
}

/* The first n_path bytes of the URL's path, then this one. */
static size_t url_join(const struct url *url, size_t n_path, const char *path, char *ret_text) {
        size_t n = (size_t)(url->path - url->text) + n_path;

        memcpy(ret_text, url->text, n);
        if (n_path == 0 || ret_text[n - 1] != '/')
                ret_text[n++] = '/';
        if (url_is_plain(url->scheme))
                return n + (size_t)(stpcpy(ret_text + n, path) - (ret_text + n));
        return n + url_encode(path, true, ret_text + n);
}

size_t url_beside(const struct url *url, const char *path, char *ret_text) {
        const char *slash = memrchr(url->path, '/', url->n_path);

        return url_join(url, slash ? (size_t)(slash + 1 - url->path) : 0, path, ret_text);
}

size_t url_below(const struct url *url, const char *path, char *ret_text) {
        return url_join(url, url->n_path, path, ret_text);
}

int url_decode(const char *encoded, size_t n_bytes, char *ret_plain) {
        size_t n = 0;

        for (size_t i = 0; i < n_bytes; i++) {
                int high, low;

                if (encoded[i] != '%') {
                        ret_plain[n++] = encoded[i];
                        continue;
                }
                if (n_bytes - i < 3 || (high = text_hex_digit(encoded[i + 1])) < 0 ||
                    (low = text_hex_digit(encoded[i + 2])) < 0 || (high | low) == 0)
                        return -EINVAL;
                ret_plain[n++] = (char)(high << 4 | low);
                i += 2;
        }
        ret_plain[n] = '\0';
        return (int)n;
}

/* ---- paths --------------------------------------------------------------------------------------------------- */

int url_plain_path(const struct url *url, char *ret_path, struct why *why) {
        size_t n_slash = url->n_path > 0;
        char shown[URL_SHOWN_SIZE];

        if (url_is_plain(url->scheme)) {
                memcpy(ret_path, url->path + n_slash, url->n_path - n_slash);
                ret_path[url->n_path - n_slash] = '\0';
                return 0;
        }
        if (url_decode(url->path + n_slash, url->n_path - n_slash, ret_path) < 0)
                return why_set(why, -EINVAL,
                               "%s: a '%%' without two hexadecimal digits after it, or %%00; write %%25 for a '%%'",
                               url_show(url->text, shown));
        return 0;
}

int url_local_path(const struct url *url, char ret_path[PATH_MAX], struct why *why) {
        _cleanup_(freep) char *path = malloc(url->n_path + 2);
        char shown[URL_SHOWN_SIZE];
        int r;

        if (!path)
                return -ENOMEM;
        path[0] = '/';
        r = url_plain_path(url, path + 1, why);
        if (r < 0)
                return r;
        if (strlen(path) >= PATH_MAX)
                return why_set(why, -ENAMETOOLONG, "%s: longer than paths may be", url_show(url->text, shown));
        strcpy(ret_path, path);
        return 0;
}
