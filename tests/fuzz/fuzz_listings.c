/* fuzz_listings [-n ROUNDS] [-t SECONDS] [-s SEED] [-r ROUND]: do manifests, lists of URLs and listings of object
 * stores, however damaged, leave their readers whole?
 *
 * Each round takes a good text and damages it: bytes, lines and pieces are changed, doubled, moved and cut, and words
 * put in that mean something to one of the readers. All three read it. What is accepted must hold what plan.h promises:
 * allowed paths in order, and a text that is read again as the same plan. The same seed makes the same rounds; -r runs
 * a single one. Without arguments: SMOKE_ROUNDS. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/stage/plan.h"
#include "daemon/stage/s3_listing.h"
#include "daemon/stage/url_list.h"
#include "tests/fuzz/damage.h"

#define SMOKE_ROUNDS 60000u
#define TEXT_MAX     8192u
#define SHA          "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static const char *const GOOD[] = {
        "{\"path\":\"a/1.jpg\",\"size\":12,\"sha256\":\"" SHA "\"}\n"
        "{\"path\":\"a/2.tar\",\"size\":0,\"urls\":[\"https://h/x?y=1\",\"s3://b/k\"],\"etag\":\"\\\"e\\\"\"}\r\n"
        "{\"path\":\"b \\u00e9\",\"size\":9007199254740991,\"unpack\":true,\"more\":[{}]}\n",
        "\xef\xbb\xbf\n{\"size\":1,\"path\":\"x\"}\n\n{\"size\":2,\"path\":\"y\"}",
        "# photographs\nhttp://h/a/b/1.jpg\nhttps://other/a/b/c/2%20.jpg?sig=1\r\n  s3://bucket/a/b/k%k\n",
        "file:///a/b\nfile://localhost/a/c\n",
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
        "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
        "<Name>b</Name><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
        "<NextContinuationToken>t/+=</NextContinuationToken>"
        "<Contents><Key>a%2Fb+c</Key><Size>12</Size><ETag>&quot;e&quot;</ETag><Owner><ID>1</ID></Owner></Contents>"
        "<Contents><Key>b</Key><Size>0</Size></Contents></ListBucketResult>",
        "<Error><Code>AccessDenied</Code><Message>No &amp; no</Message></Error>",
};

static const char *const WORDS[] = {
        "..",        "/",         "\"",         "\\",          "\\u0000", "\\ud800",  "{",         "}",
        "[",         "]",         ",",          ":",           "null",    "1e400",    "-1",        "\n",
        "\r\n",      "\xff",      "%00",        "%2f",         "%",       "s3://",    "@",         "<!DOCTYPE a [",
        "<!ENTITY",  "&a;",       "<Contents>", "</Contents>", "<Key>",   "</Key>",   "<![CDATA[", "]]>",
        "\"path\":", "\"size\":", "\"urls\":[", "file:///",    "A",       "\xc3\x89", "#"
};

/* What became of the texts. */
static struct { uint64_t plans, lists, pages, objects; } counts;

static uint64_t round_now;

static void fail(const char *what) {
        fprintf(stderr, "fuzz_listings: %s (-r %" PRIu64 ", with the same -s)\n", what, round_now);
        abort();
}

/* ---- damage -------------------------------------------------------------------------------------------------- */

static void insert(struct bytes *text, size_t at, const char *piece, size_t n) {
        if (text->n + n > text->room)
                return;
        memmove(text->at + at + n, text->at + at, text->n - at);
        memcpy(text->at + at, piece, n);
        text->n += n;
}

static void harm(struct bytes *text, struct random *random) {
        size_t at = draw(random, (uint32_t)text->n + 1), n = draw(random, 64);
        const char *word = WORDS[draw(random, ARRAY_SIZE(WORDS))];
        char piece[64];

        if (n > text->n - at)
                n = text->n - at;
        memcpy(piece, text->at + at, n);
        switch (draw(random, 6)) {
        case 0:
                if (n > 0)
                        text->at[at] = (uint8_t)draw(random, 256);
                break;
        case 1: /* a piece falls out */
                memmove(text->at + at, text->at + at + n, text->n - at - n);
                text->n -= n;
                break;
        case 2: /* or comes again elsewhere */
                insert(text, draw(random, (uint32_t)text->n + 1), piece, n);
                break;
        case 3:
                text->n = at;
                break;
        default:
                insert(text, at, word, strlen(word));
        }
}

/* ---- readers ------------------------------------------------------------------------------------------------- */

static void check_plan(const struct plan *plan) {
        _cleanup_(plan_freep) struct plan *again = NULL;
        _cleanup_(freep) char *text = NULL;
        size_t n_bytes = 0;

        for (uint64_t i = 0; i < plan_n_files(plan); i++) {
                const struct plan_file *file = plan_file(plan, i);

                if (plan_path_check(file->path, strlen(file->path), NULL) < 0 || file->n_urls == 0 ||
                    plan_find(plan, file->path) != (int64_t)i)
                        fail("a plan with a path that may not be, or out of order");
        }
        if (plan_write(plan, &text, &n_bytes) < 0 || plan_parse(text, n_bytes, "again", NULL, true, &again, NULL) < 0 ||
            strcmp(plan_digest(plan), plan_digest(again)) != 0)
                fail("a plan that is not read as it was written");
}

static void read_manifest(const char *text, size_t n_bytes) {
        _cleanup_(plan_freep) struct plan *plan = NULL;
        struct why why = { 0 };

        if (plan_parse(text, n_bytes, "fuzzed", "https://h/d/m.jsonl", n_bytes % 2, &plan, &why) == 0) {
                check_plan(plan);
                counts.plans++;
        } else if (!why.text[0]) {
                fail("a manifest that is refused without a word");
        }
}

static void read_list(const char *text, size_t n_bytes) {
        struct url_list list;
        struct why why = { 0 };

        if (url_list_parse(text, n_bytes, "fuzzed", &list, &why) == 0) {
                for (uint64_t i = 0; i < list.n_items; i++)
                        if (!list.items[i].path[0])
                                fail("a URL of a list without a path");
                url_list_fini(&list);
                counts.lists++;
        } else if (!why.text[0]) {
                fail("a list that is refused without a word");
        }
}

static int on_object(void *userdata, const struct s3_object *object) {
        if (!object->key[0] || strlen(object->key) > S3_KEY_MAX)
                fail("an object without or with too long a key");
        counts.objects++;
        return 0;
}

static void read_listing(const char *text, size_t n_bytes) {
        struct s3_page page;
        struct why why = { 0 };

        if (s3_listing_parse(text, n_bytes, on_object, NULL, &page, &why) == 0) {
                if (strlen(page.token) >= sizeof(page.token))
                        fail("a token without an end");
                counts.pages++;
        } else if (!why.text[0]) {
                fail("a listing that is refused without a word");
        }
}

/* ---- rounds -------------------------------------------------------------------------------------------------- */

static void run_round(uint64_t seed, uint64_t round) {
        static uint8_t buffer[TEXT_MAX];
        struct random random = random_of(seed, round);
        const char *good = GOOD[draw(&random, ARRAY_SIZE(GOOD))];
        struct bytes text = { .at = buffer, .n = strlen(good), .room = sizeof(buffer) };
        uint32_t n_harms = draw(&random, 6);
        char *exact;

        memcpy(buffer, good, text.n);
        for (uint32_t i = 0; i < n_harms; i++)
                harm(&text, &random);
        exact = malloc(text.n + 1); /* no byte more, so that reading beyond it is seen; one, or malloc(0) */
        if (!exact)
                exit(2);
        memcpy(exact + 1, buffer, text.n);
        read_manifest(exact + 1, text.n);
        read_list(exact + 1, text.n);
        read_listing(exact + 1, text.n);
        free(exact);
}

int main(int argc, char **argv) {
        uint64_t n_rounds = SMOKE_ROUNDS, seed = 1, first = 0, limit_ns = UINT64_MAX, begin_ns = clock_now_ns(), round;
        int option;

        while ((option = getopt(argc, argv, "n:t:s:r:")) != -1) {
                uint64_t number = optarg ? strtoull(optarg, NULL, 10) : 0;

                if (option == 'n') {
                        n_rounds = number;
                } else if (option == 't') {
                        limit_ns = number * 1000000000ull;
                        n_rounds = UINT64_MAX;
                } else if (option == 's') {
                        seed = number;
                } else if (option == 'r') {
                        first = number;
                        n_rounds = 1;
                } else {
                        fprintf(stderr, "usage: fuzz_listings [-n ROUNDS] [-t SECONDS] [-s SEED] [-r ROUND]\n");
                        return 2;
                }
        }
        for (round = first; round - first < n_rounds; round++) {
                round_now = round;
                run_round(seed, round);
                if (round % 256 == 0 && clock_now_ns() - begin_ns > limit_ns)
                        break;
        }
        printf("%" PRIu64 " texts, seed %" PRIu64 ": %" PRIu64 " plans, %" PRIu64 " lists and %" PRIu64
               " pages (%" PRIu64 " objects) accepted, %.1f s\n",
               round - first, seed, counts.plans, counts.lists, counts.pages, counts.objects,
               (double)(clock_now_ns() - begin_ns) / 1e9);
        return 0;
}
