/* Any text as a list of URLs, and each line of it as a URL by itself: taken apart, shown, sent, put beside a path,
 * turned into the address of an object. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/fetch/hub_address.h"
#include "daemon/fetch/origin/url_list.h"
#include "daemon/fetch/s3_address.h"
#include "daemon/fetch/url_line.h"
#include "daemon/store/plan/plan.h"
#include "proto/base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void use_address(const char *url) {
        static const char PATH[] = "a b/\xc3\xa9.jpg";
        char shown[URL_SHOWN_SIZE];
        struct url address;
        struct why why = { 0 };
        size_t room;
        char *text;

        if (url_parse(url, &address, &why) < 0) {
                if (!why.text[0])
                        abort();
                return;
        }
        if (strlen(url_show(address.text, shown)) >= sizeof(shown))
                abort();
        room = strlen(url) + 3 * strlen(PATH) + 2;
        text = malloc(room);
        if (url_beside(&address, PATH, text) != strlen(text) || url_below(&address, PATH, text) != strlen(text))
                abort();
        free(text);
        text = malloc(address.n_path + 1);
        url_decode(address.path, address.n_path, text);
        free(text);
        text = malloc(3 * strlen(url) + 1);
        if (url_encode_value(url, text) != strlen(text))
                abort();
        free(text);
}

static void use_url(const char *url) {
        static const struct s3_store STORES[] = { { NULL, "us-east-1", "auto" },
                                                  { "https://h:9000/x", "eu", "auto" },
                                                  { "http://h", "r", "virtual" } };
        char shown[URL_SHOWN_SIZE];
        struct url parsed;
        struct why why = { 0 };

        use_address(url);
        if (strlen(url_show(url, shown)) >= sizeof(shown))
                abort();
        if (url_parse(url, &parsed, &why) == 0)
                free(url_line(url, "a=b"));
        for (size_t i = 0; i < ARRAY_SIZE(STORES) && strncasecmp(url, "s3://", 5) == 0; i++) {
                char *address = NULL;

                if (s3_address(&STORES[i], url, &address, &why) == 0)
                        free(address);
        }
        if (strncasecmp(url, "hf://", 5) == 0) {
                char *address = NULL;

                if (hub_address("https://h", url, &address, &why) == 0)
                        free(address);
                else if (!why.text[0])
                        abort();
        }
        url_same_server(url, "https://h:443/x");
        url_same_server(url, url);
}

static void use_lines(const char *text, size_t n_bytes) {
        char *copy = strndup(text, n_bytes), *rest = copy, *line;

        for (int i = 0; i < 8 && (line = strsep(&rest, "\n")); i++)
                use_url(line);
        free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        struct url_list list;
        struct why why = { 0 };

        if (url_list_parse((const char *)data, n_bytes, "fuzzed", &list, &why) == 0) {
                for (uint64_t i = 0; i < list.n_items; i++)
                        if (!list.items[i].path[0] || strlen(list.items[i].url) >= URL_BYTES_MAX)
                                abort();
                url_list_fini(&list);
        } else if (!why.text[0]) {
                abort();
        }
        use_lines((const char *)data, n_bytes);
        return 0;
}
