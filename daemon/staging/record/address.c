#include "daemon/staging/record/address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/text.h"

#define SHOWN_MAX 140u /* bytes of a URL in a message */

static const char *const SCHEMES[] = { "http", "https", "file", "s3" };

/* ---- taking apart -------------------------------------------------------------------------------------------- */

bool address_has_scheme(const struct address *address, const char *scheme) {
        return address->n_scheme == strlen(scheme) && strncasecmp(address->scheme, scheme, address->n_scheme) == 0;
}

static bool scheme_is_known(const struct address *address) {
        for (size_t i = 0; i < sizeof(SCHEMES) / sizeof(SCHEMES[0]); i++)
                if (address_has_scheme(address, SCHEMES[i]))
                        return true;
        return false;
}

const char *address_show(const struct address *address, char shown[ADDRESS_SHOWN_SIZE]) {
        size_t n_host = address->n_host < SHOWN_MAX ? address->n_host : SHOWN_MAX;
        size_t n_path = address->n_path < SHOWN_MAX ? address->n_path : SHOWN_MAX;

        snprintf(shown, ADDRESS_SHOWN_SIZE, "%.*s://%.*s%.*s%s", (int)(address->n_scheme < 16 ? address->n_scheme : 16),
                 address->scheme, (int)n_host, address->host, (int)n_path, address->path,
                 n_host < address->n_host || n_path < address->n_path ? "..." : "");
        return shown;
}

static int refuse(struct why *why, const struct address *address, const char *what) {
        char shown[ADDRESS_SHOWN_SIZE];

        return why_set(why, -EINVAL, "URL \"%s\" %s", address_show(address, shown), what);
}

/* How much of a URL that is none yet may be shown: nothing that could be a query, or stand before an '@'. */
static int n_shown(const char *url, size_t n) {
        const char *host = strstr(url, "://");
        size_t n_open = strchr(url, '@') ? (host ? (size_t)(host + 3 - url) : 0) : strcspn(url, "?");

        n = n < n_open ? n : n_open;
        return (int)(n < SHOWN_MAX ? n : SHOWN_MAX);
}

static int check_bytes(const char *url, struct why *why) {
        size_t n = strnlen(url, ADDRESS_MAX + 1);

        if (n > ADDRESS_MAX)
                return why_set(why, -EINVAL, "URL \"%.*s...\" is longer than %u bytes", n_shown(url, n), url,
                               ADDRESS_MAX);
        if (!text_is_printable(url))
                return why_set(why, -EINVAL, "URL \"%.*s\" has control characters in it, or bytes that are no UTF-8",
                               n_shown(url, n), url);
        return 0;
}

int address_parse(const char *url, struct address *ret_address, struct why *why) {
        struct address address = { .scheme = url };
        const char *colon, *at;
        int r = check_bytes(url, why);

        if (r < 0)
                return r;
        colon = strstr(url, "://");
        if (!colon)
                return why_set(why, -EINVAL, "\"%.*s\" is no URL; write http://, https://, s3:// or file:///",
                               n_shown(url, SHOWN_MAX), url);
        address.n_scheme = (size_t)(colon - url);
        address.host = colon + 3;
        address.n_host = strcspn(address.host, "/?#");
        address.path = address.host + address.n_host;
        address.n_path = address_has_scheme(&address, "s3") ? strlen(address.path) : strcspn(address.path, "?#");
        address.rest = address.path + address.n_path;

        at = memrchr(address.host, '@', address.n_host);
        if (at) {
                address.n_host -= (size_t)(at + 1 - address.host);
                address.host = at + 1;
                return refuse(why, &address,
                              "has a user in it; names and passwords belong into the dataset's credentials file");
        }
        if (address.n_scheme > 16 || !scheme_is_known(&address))
                return why_set(why, -EINVAL, "URL \"%.*s://...\": the scheme must be http, https, s3 or file",
                               n_shown(url, address.n_scheme), url);
        if (address_has_scheme(&address, "file")) {
                if (address.n_host != 0 && !(address.n_host == 9 && strncasecmp(address.host, "localhost", 9) == 0))
                        return refuse(why, &address, "names another host; write file:///path");
                if (address.n_path == 0)
                        return refuse(why, &address, "has no path; write file:///path");
        } else if (address.n_host == 0) {
                return refuse(why, &address,
                              address_has_scheme(&address, "s3") ? "has no bucket; write s3://bucket/key"
                                                                 : "has no host");
        }
        *ret_address = address;
        return 0;
}

/* ---- percent-encoding ---------------------------------------------------------------------------------------- */

/* RFC 3986's unreserved characters, and nothing else: what S3's signatures are made of. */
static bool is_unreserved(unsigned char byte) {
        return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
               byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

static size_t encode(const char *plain, bool keep_slash, char *ret_encoded) {
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

size_t address_encode_value(const char *value, char *ret_encoded) {
        return encode(value, false, ret_encoded);
}

/* The first n bytes of the URL's path, then this one. */
static size_t join(const struct address *address, size_t n_path, const char *path, char *ret_url) {
        size_t n = (size_t)(address->host - address->scheme) + address->n_host;

        memcpy(ret_url, address->scheme, n);
        memcpy(ret_url + n, address->path, n_path);
        n += n_path;
        if (n_path == 0 || ret_url[n - 1] != '/')
                ret_url[n++] = '/';
        if (address_has_scheme(address, "s3"))
                return n + (size_t)(stpcpy(ret_url + n, path) - (ret_url + n));
        return n + encode(path, true, ret_url + n);
}

size_t address_beside(const struct address *address, const char *path, char *ret_url) {
        const char *slash = memrchr(address->path, '/', address->n_path);

        return join(address, slash ? (size_t)(slash + 1 - address->path) : 0, path, ret_url);
}

size_t address_below(const struct address *address, const char *path, char *ret_url) {
        return join(address, address->n_path, path, ret_url);
}

static int digit(char character) {
        if (character >= '0' && character <= '9')
                return character - '0';
        if ((character | 32) >= 'a' && (character | 32) <= 'f')
                return (character | 32) - 'a' + 10;
        return -1;
}

int address_decode(const char *encoded, size_t n_bytes, char *ret_plain) {
        size_t n = 0;

        for (size_t i = 0; i < n_bytes; i++) {
                int high, low;

                if (encoded[i] != '%') {
                        ret_plain[n++] = encoded[i];
                        continue;
                }
                if (n_bytes - i < 3 || (high = digit(encoded[i + 1])) < 0 || (low = digit(encoded[i + 2])) < 0 ||
                    (high | low) == 0)
                        return -EINVAL;
                ret_plain[n++] = (char)(high << 4 | low);
                i += 2;
        }
        ret_plain[n] = '\0';
        return (int)n;
}

/* ---- paths --------------------------------------------------------------------------------------------------- */

int address_plain_path(const struct address *address, char *ret_path, struct why *why) {
        const char *path = address->path + (address->n_path > 0);
        size_t n = address->n_path - (address->n_path > 0);
        char shown[ADDRESS_SHOWN_SIZE];

        if (address_has_scheme(address, "s3")) {
                memcpy(ret_path, path, n);
                ret_path[n] = '\0';
                return 0;
        }
        if (address_decode(path, n, ret_path) < 0)
                return why_set(why, -EINVAL, "%s: a '%%' without two digits behind it, or %%00; write %%25 for a '%%'",
                               address_show(address, shown));
        return 0;
}

int address_local_path(const struct address *address, char ret_path[PATH_MAX], struct why *why) {
        _cleanup_(freep) char *path = malloc(address->n_path + 2);
        char shown[ADDRESS_SHOWN_SIZE];
        int r;

        if (!path)
                return -ENOMEM;
        path[0] = '/';
        r = address_plain_path(address, path + 1, why);
        if (r < 0)
                return r;
        if (strlen(path) >= PATH_MAX)
                return why_set(why, -ENAMETOOLONG, "%s: longer than paths may be", address_show(address, shown));
        strcpy(ret_path, path);
        return 0;
}
