/* Datasets that ranks name by their paths. Their entries are made on demand, shared by all who write the same path and
 * options, and kept for a while after their last use, so that the next process finds them open. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/pipeline/catalog/catalog_private.h"
#include "proto/base/clock.h"
#include "proto/base/path_url.h"
#include "proto/base/text.h"

#define ENTRIES_MAX     256u
#define KEPT_NS         600000000000ull /* an open one, after its last use */
#define KEPT_FAILED_NS  60000000000ull  /* so that `dlctl datasets` can still show why */
#define KEPT_OPENING_NS 10000000000ull  /* nobody asks for it any more: its client has given up */
#define RETRY_AFTER_NS  1000000000ull   /* what failed is tried again when it is asked for later than this */
#define OPTIONS_SHOWN   300u            /* bytes of options in a name */

/* ---- names ----------------------------------------------------------------------------------------------------- */

/* " + " stands between names, so a path that has it is written otherwise; and so is what it is written with. */
static int add_path(const char *path, char text[DLP_DATASET_MAX], size_t *n) {
        for (const char *at = path; *at; at++) {
                bool is_between = at[0] == '+' && at > path && at[-1] == ' ' && at[1] == ' ';

                if (*n + 3 >= DLP_PATH_MAX)
                        return -ENAMETOOLONG;
                if (*at == '\\' || is_between)
                        text[(*n)++] = '\\';
                text[(*n)++] = *at;
        }
        text[*n] = '\0';
        return 0;
}

/* Of "KEY=VALUE" lines: {key="value" key="value"}. Long ones are cut, and a digest tells them apart. */
static int add_options(const char *options, char text[DLP_DATASET_MAX], size_t n) {
        char shown[2 * OPTIONS_SHOWN + 64] = "";
        size_t n_shown = 0, n_options = strlen(options);
        unsigned char digest[EVP_MAX_MD_SIZE];
        bool is_value = false;

        for (const char *at = options; *at && n_shown < 2 * OPTIONS_SHOWN; at++) {
                if (n_options > OPTIONS_SHOWN && at - options >= (int)OPTIONS_SHOWN)
                        break;
                if (*at == '\n') {
                        n_shown += (size_t)sprintf(shown + n_shown, "%s", at[1] ? "\" " : "\"");
                        is_value = false;
                } else if (*at == '=' && !is_value) {
                        n_shown += (size_t)sprintf(shown + n_shown, "=\"");
                        is_value = true;
                } else if (*at == '+' || *at == '"' || *at == '\\') { /* " + " stands between names */
                        n_shown += (size_t)sprintf(shown + n_shown, "\\%c", *at);
                } else {
                        shown[n_shown++] = *at;
                        shown[n_shown] = '\0';
                }
        }
        if (n_options <= OPTIONS_SHOWN) {
                snprintf(text + n, DLP_DATASET_MAX - n, " {%s}", shown);
                return 0;
        }
        if (!EVP_Digest(options, n_options, digest, NULL, EVP_sha256(), NULL))
                return -ENOMEM;
        while (n_shown > 0 && !text_is_name(shown)) /* cut within a character */
                shown[--n_shown] = '\0';
        snprintf(text + n, DLP_DATASET_MAX - n, " {%s... #%02x%02x%02x%02x%02x%02x%02x%02x}", shown, digest[0],
                 digest[1], digest[2], digest[3], digest[4], digest[5], digest[6], digest[7]);
        return 0;
}

/* A URL's query may be a signature: of it a name has a digest. */
static int hide_query(const char *path, char ret_shown[DLP_PATH_MAX]) {
        const char *query = path_is_url(path) ? strchr(path, '?') : NULL;
        unsigned char digest[EVP_MAX_MD_SIZE];
        int n;

        if (query && strncmp(path, "http", 4) != 0)
                query = NULL; /* a part of the key, or of a pattern */
        if (query && !EVP_Digest(query, strlen(query), digest, NULL, EVP_sha256(), NULL))
                return -ENOMEM;
        n = snprintf(ret_shown, DLP_PATH_MAX, "%.*s", query ? (int)(query - path) : (int)DLP_PATH_MAX, path);
        if (query && n + 16 < (int)DLP_PATH_MAX)
                snprintf(ret_shown + n, DLP_PATH_MAX - (size_t)n, "?...%02x%02x%02x%02x", digest[0], digest[1],
                         digest[2], digest[3]);
        return n < (int)DLP_PATH_MAX ? 0 : -ENAMETOOLONG;
}

int catalog_path_name(const char *path, const char *options, char ret_name[DLP_DATASET_MAX], struct why *why) {
        char text[DLP_DATASET_MAX], shown[DLP_PATH_MAX];
        size_t n = 0;
        int r;

        if (path[0] != '/' && !path_is_url(path))
                return why_set(why, -EINVAL, "dataset: \"%s\" is not an absolute path", path);
        if (!text_is_name(path))
                return why_set(why, -EINVAL,
                               "dataset: the path %s has control characters or is not UTF-8; rename what has them",
                               path);
        r = hide_query(path, shown);
        if (r == 0)
                r = add_path(shown, text, &n);
        if (r < 0)
                return why_set(why, -EINVAL, "dataset: the path %s is longer than %u bytes", path, DLP_PATH_MAX);
        if (options[0])
                r = add_options(options, text, n);
        if (r < 0)
                return why_set(why, r, "dataset: no memory for the name of %s", path);
        strcpy(ret_name, text);
        return 0;
}

/* ---- entries --------------------------------------------------------------------------------------------------- */

static bool is_in_use(const struct catalog_entry *entry) {
        if (entry->open && atomic_load_explicit(&entry->open->refs, memory_order_acquire) > 1)
                return true;
        if (entry->arriving && atomic_load_explicit(&entry->arriving->refs, memory_order_acquire) > 1)
                return true;
        return entry->is_checking || !TAILQ_EMPTY(&entry->waiters);
}

static uint64_t kept_ns(const struct catalog_entry *entry) {
        if (entry->arriving)
                return KEPT_NS;
        switch (entry->state) {
        case CATALOG_READY:
                return KEPT_NS;
        case CATALOG_FAILED:
                return KEPT_FAILED_NS;
        default:
                return KEPT_OPENING_NS;
        }
}

void paths_drop_unused(struct catalog *catalog) {
        struct catalog_entry *entry, *next;
        uint64_t now_ns = clock_now_ns();

        TAILQ_FOREACH_SAFE(entry, &catalog->entries, entry, next) {
                if (!entry->is_path)
                        continue;
                if (is_in_use(entry)) {
                        entry->used_ns = now_ns;
                } else if (now_ns - entry->used_ns > kept_ns(entry)) {
                        log_info("dataset", "%s: closed, as nobody has used it for a while", entry->name);
                        entry_remove(entry);
                }
        }
}

/* Makes room for another one. */
static int drop_oldest(struct catalog *catalog, struct why *why) {
        struct catalog_entry *entry, *oldest = NULL;
        uint32_t n = 0;

        TAILQ_FOREACH(entry, &catalog->entries, entry) {
                if (!entry->is_path)
                        continue;
                n++;
                if (!is_in_use(entry) && (!oldest || entry->used_ns < oldest->used_ns))
                        oldest = entry;
        }
        if (n < ENTRIES_MAX)
                return 0;
        if (!oldest)
                return why_set(why, -ENOSPC, "dataset: %u paths are in use, which is the limit", ENTRIES_MAX);
        entry_remove(oldest);
        return 0;
}

int catalog_add_path(struct catalog *catalog, const struct catalog_wish *wish, struct why *why) {
        struct catalog_entry *entry = entry_find(catalog, wish->name);
        int r;

        if (entry) {
                entry->used_ns = clock_now_ns();
                if (entry->state == CATALOG_FAILED && entry->used_ns - entry->failed_at_ns > RETRY_AFTER_NS)
                        entry_open(entry);
                return 0;
        }
        joined_drop_unused(catalog);
        r = drop_oldest(catalog, why);
        if (r == 0)
                r = entry_add(catalog, wish, true, why);
        if (r < 0)
                return r;
        entry = entry_find(catalog, wish->name);
        entry->used_ns = clock_now_ns();
        return 0;
}
