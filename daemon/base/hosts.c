#include "daemon/base/hosts.h"

#include <errno.h>
#include <string.h>

#define BETWEEN ", \t\n"

int hosts_next(const char **text, const char **ret_host, size_t *ret_n_bytes, struct why *why) {
        static const char GOOD[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
        const char *host = *text + strspn(*text, BETWEEN);
        size_t n = strspn(host, GOOD);

        if (*host == '\0')
                return 0;
        if (n == 0 || host[0] == '-' || (host[n] && !strchr(BETWEEN, host[n])))
                return why_set(why, -EINVAL, "\"%s\" is not a name or address of a host", host);
        *ret_host = host;
        *ret_n_bytes = n;
        *text = host + n;
        return 1;
}
