#include "daemon/base/hosts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BETWEEN ", \t\n"

static const char GOOD[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

int hosts_next(const char **text, const char **ret_host, size_t *ret_n_bytes, struct why *why) {
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

int hosts_next_place(const char **text, char ret_host[HOSTS_HOST_SIZE], uint16_t *ret_port, struct why *why) {
        const char *word = *text + strspn(*text, BETWEEN), *rest;
        size_t n_word = strcspn(word, BETWEEN), n_host;
        bool is_v6 = *word == '[', is_good;
        unsigned long port = 0;
        char *end;

        if (n_word == 0)
                return 0;
        n_host = is_v6 ? strspn(word + 1, "0123456789abcdefABCDEF:.") : strspn(word, GOOD);
        rest = word + n_host + (is_v6 ? 2 : 0);
        is_good = n_host < HOSTS_HOST_SIZE && *word != '-' && (!is_v6 || (n_host > 0 && rest[-1] == ']'));
        if (is_good && *rest == ':' && rest[1] >= '0' && rest[1] <= '9') {
                port = strtoul(rest + 1, &end, 10);
                rest = end;
        }
        if (!is_good || rest != word + n_word || port > UINT16_MAX)
                return why_set(why, -EINVAL, "\"%.*s\" is not HOST or HOST:PORT", (int)n_word, word);
        memcpy(ret_host, word + is_v6, n_host);
        ret_host[n_host] = '\0';
        *ret_port = (uint16_t)port;
        *text = word + n_word;
        return 1;
}
