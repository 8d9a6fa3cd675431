/* Tokenizers: the numbers that "tokenizers" gives (tests/vectors/tokenizers), what is refused and where, and texts that
 * would take a slow way very long. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/keyed_hash.h"
#include "daemon/tokenize/grow.h"
#include "daemon/tokenize/model.h"
#include "daemon/tokenize/patterns/token_pattern.h"
#include "daemon/tokenize/tokenizer.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

static const char *const KINDS[] = { "bert",  "bert_cased", "gpt2",   "roberta", "llama3", "qwen",
                                     "o200k", "clip",       "llama2", "mistral", "meta",   "added" };

static struct why why;

static struct tokenizer *load(const char *name) {
        struct tokenizer *tokenizer;
        char path[256];
        uint8_t *bytes;
        size_t n;

        snprintf(path, sizeof(path), "tests/vectors/tokenizers/%s.json", name);
        bytes = read_whole_file(path, &n);
        ck_assert_msg(tokenizer_new(bytes, n, &tokenizer, &why) == 0, "%s: %s", name, why.text);
        free(bytes);
        return tokenizer;
}

static struct token_encoder *new_encoder(void) {
        struct token_encoder *encoder;

        ck_assert_int_eq(token_encoder_new(NULL, &encoder), 0);
        return encoder;
}

/* ---- equal ----------------------------------------------------------------------------------------------------- */

static void compare(const char *kind, unsigned line, const cJSON *ids, const struct frame *frame,
                    const uint32_t *tokens, size_t n) {
        size_t n_all = frame->n_before + n + frame->n_after, i = 0;
        const cJSON *id;

        ck_assert_msg((size_t)cJSON_GetArraySize(ids) == n_all, "%s, line %u: %zu tokens, %d are expected", kind, line,
                      n_all, cJSON_GetArraySize(ids));
        cJSON_ArrayForEach(id, ids) {
                uint32_t is = i < frame->n_before       ? frame->before[i]
                              : i < frame->n_before + n ? tokens[i - frame->n_before]
                                                        : frame->after[i - frame->n_before - n];

                ck_assert_msg((double)is == id->valuedouble, "%s, line %u: token %zu is %u, %.0f is expected", kind,
                              line, i, is, id->valuedouble);
                i++;
        }
}

/* With fewer tokens asked for, the same ones come first. */
static void check_beginning(const struct tokenizer *tokenizer, struct token_encoder *encoder, const char *text,
                            const uint32_t *tokens, size_t n) {
        _cleanup_(freep) uint32_t *all = malloc((n + 1) * sizeof(*all));
        size_t n_some, n_max = (n + 1) / 2;

        if (n > 0)
                memcpy(all, tokens, n * sizeof(*all));
        ck_assert_int_eq(tokenizer_encode(tokenizer, encoder, (const uint8_t *)text, strlen(text), n_max, &tokens,
                                          &n_some, &why),
                         0);
        ck_assert_uint_ge(n_some, n_max);
        ck_assert_uint_le(n_some, n);
        if (n_some > 0)
                ck_assert_int_eq(memcmp(all, tokens, n_some * sizeof(*all)), 0);
        ck_assert_int_eq(tokenizer_encode(tokenizer, encoder, (const uint8_t *)text, strlen(text), SIZE_MAX, NULL,
                                          &n_some, &why),
                         0);
        ck_assert_uint_eq(n_some, n);
}

START_TEST(tokens_are_those_of_the_library) {
        const char *kind = KINDS[_i];
        struct tokenizer *tokenizer = load(kind);
        struct token_encoder *encoder = new_encoder();
        struct vectors texts, ids;
        char path[256];

        snprintf(path, sizeof(path), "tokenizers/%s.ids.jsonl", kind);
        vectors_open(&ids, path);
        vectors_open(&texts, "tokenizers/texts.jsonl");
        while (vectors_next(&texts)) {
                const char *text = vector_string(texts.line, "text");
                const uint32_t *tokens;
                size_t n, n_ids;

                ck_assert(vectors_next(&ids));
                ck_assert_msg(tokenizer_encode(tokenizer, encoder, (const uint8_t *)text, strlen(text), SIZE_MAX,
                                               &tokens, &n, &why) == 0,
                              "%s", why.text);
                compare(kind, texts.number, vector_array(ids.line, "ids", &n_ids), tokenizer_frame(tokenizer), tokens,
                        n);
                check_beginning(tokenizer, encoder, text, tokens, n);
        }
        vectors_close(&ids);
        token_encoder_free(encoder);
        tokenizer_unref(tokenizer);
}
END_TEST

/* Words are kept from text to text, and must not be another tokenizer's. */
START_TEST(an_encoder_serves_several_tokenizers) {
        static const uint8_t TEXT[] = "The quick brown fox";
        struct tokenizer *bert = load("bert"), *gpt2 = load("gpt2");
        struct token_encoder *encoder = new_encoder();
        uint32_t first[64];
        const uint32_t *tokens;
        size_t n_first, n;

        ck_assert_int_eq(tokenizer_encode(bert, encoder, TEXT, sizeof(TEXT) - 1, SIZE_MAX, &tokens, &n_first, &why), 0);
        memcpy(first, tokens, n_first * sizeof(*first));
        ck_assert_int_eq(tokenizer_encode(gpt2, encoder, TEXT, sizeof(TEXT) - 1, SIZE_MAX, &tokens, &n, &why), 0);
        ck_assert(n != n_first || memcmp(first, tokens, n * sizeof(*first)) != 0);
        ck_assert_int_eq(tokenizer_encode(bert, encoder, TEXT, sizeof(TEXT) - 1, SIZE_MAX, &tokens, &n, &why), 0);
        ck_assert_uint_eq(n, n_first);
        ck_assert_int_eq(memcmp(first, tokens, n * sizeof(*first)), 0);
        ck_assert_uint_gt(tokenizer_bytes(bert), 10000);
        ck_assert_str_ne(tokenizer_digest(bert), tokenizer_digest(gpt2));
        token_encoder_free(encoder);
        tokenizer_unref(bert);
        tokenizer_unref(gpt2);
}
END_TEST

/* ---- long ------------------------------------------------------------------------------------------------------ */

/* With less and less memory, until there is not enough: never more is taken, and then it says so. */
static void check_account(const struct tokenizer *tokenizer, const uint8_t *text, size_t n) {
        struct grow_account account = { .n_most = SIZE_MAX };
        struct token_encoder *encoder;
        const uint32_t *tokens;
        size_t n_tokens;
        int r = 0;

        while (r == 0) {
                ck_assert_int_eq(token_encoder_new(&account, &encoder), 0);
                r = tokenizer_encode(tokenizer, encoder, text, n, SIZE_MAX, &tokens, &n_tokens, &why);
                ck_assert_uint_le(account.n_bytes, account.n_most);
                account.n_most = account.n_bytes - 1;
                token_encoder_free(encoder);
                ck_assert_uint_eq(account.n_bytes, 0);
        }
        ck_assert_int_eq(r, -ENOMEM);
        ck_assert(account.was_full);
}

/* A megabyte without a blank: every pair of it merges, or it is looked at for its end again and again. */
START_TEST(a_long_word_takes_linear_time) {
        const size_t N = suite_rounds(1 << 20);
        static const char *const PARTS[] = {
                "a", "ab", "e\xcc\x81", " ", "1", "\xe5\xad\x97", "\xcc\x81\xcc\xa3", "Aa'"
        };
        const char *kind = KINDS[_i];
        struct tokenizer *tokenizer = load(kind);
        struct token_encoder *encoder = new_encoder();
        _cleanup_(freep) uint8_t *text = malloc(N);

        for (size_t part = 0; part < ARRAY_SIZE(PARTS); part++) {
                const uint32_t *tokens;
                size_t n = strlen(PARTS[part]), n_tokens;

                for (size_t i = 0; i < N / n * n; i++)
                        text[i] = (uint8_t)PARTS[part][i % n];
                ck_assert_msg(
                        tokenizer_encode(tokenizer, encoder, text, N / n * n, SIZE_MAX, &tokens, &n_tokens, &why) == 0,
                        "%s of %s: %s", PARTS[part], kind, why.text);
                check_account(tokenizer, text, N / 64 / n * n);
        }
        token_encoder_free(encoder);
        tokenizer_unref(tokenizer);
}
END_TEST

START_TEST(a_word_may_be_too_long) {
        struct tokenizer *tokenizer = load("gpt2");
        struct token_encoder *encoder = new_encoder();
        size_t n = MODEL_WORD_MAX + 1, n_tokens;
        _cleanup_(freep) uint8_t *text = malloc(n);
        const uint32_t *tokens;

        memset(text, 'a', n);
        ck_assert_int_eq(tokenizer_encode(tokenizer, encoder, text, n, SIZE_MAX, &tokens, &n_tokens, &why), -EFBIG);
        ck_assert_str_eq(why.text, "has a piece of 4194305 bytes that its tokenizer does not cut; at most 4194304 are "
                                   "possible");
        text[n / 2] = ' ';
        ck_assert_int_eq(tokenizer_encode(tokenizer, encoder, text, n, SIZE_MAX, &tokens, &n_tokens, &why), 0);
        token_encoder_free(encoder);
        tokenizer_unref(tokenizer);
}
END_TEST

/* Pairs of words that cancel each other in a hash that multiplies to 64 bits, whatever it begins with: of 64 texts that
 * all have one place there. */
START_TEST(texts_that_somebody_chose_have_places_of_their_own) {
        static const uint64_t FLIPS[2] = { UINT64_C(1) << 63, UINT64_C(1) << 63 | UINT64_C(1) << 31 };
        uint64_t words[12], places[64];
        unsigned n_equal = 0;

        for (unsigned i = 0; i < ARRAY_SIZE(places); i++) {
                for (unsigned k = 0; k < ARRAY_SIZE(words); k++)
                        words[k] = (0x6161616161616161u + k) ^ (i >> k / 2 & 1 ? FLIPS[k % 2] : 0);
                places[i] = keyed_hash(words, sizeof(words)) & 0xffff;
                for (unsigned k = 0; k < i; k++)
                        n_equal += places[k] == places[i];
        }
        ck_assert_uint_lt(n_equal, 8);
}
END_TEST

/* Thousands of tokens that begin alike, tokens that begin with each other, and blanks that are tokens and are skipped
 * after each: a text that looks like all of them takes no longer for that. */
START_TEST(many_added_tokens_take_linear_time) {
        enum {
                N = 1 << 20,
                N_ADDED = 20000
        };
        static const char *const PARTS[] = { "<", "<9", "aaaaaaab", " ", "\n " };
        _cleanup_(freep) char *json = malloc(N_ADDED * 80 + 4096);
        _cleanup_(freep) uint8_t *text = malloc(N);
        struct token_encoder *encoder = new_encoder();
        struct tokenizer *tokenizer;
        const uint32_t *tokens;
        size_t n = 0, n_tokens;
        uint32_t id = 4;

        n += (size_t)sprintf(json + n, "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,"
                                       "\"a\":1}},\"added_tokens\":[{\"id\":2,\"content\":\" \",\"rstrip\":true},"
                                       "{\"id\":3,\"content\":\"\\n\"}");
        for (unsigned i = 0; i < N_ADDED; i++)
                n += (size_t)sprintf(json + n, ",{\"id\":%u,\"content\":\"<%u>\"}", id++, i);
        for (int i = 1; i < 80; i++)
                n += (size_t)sprintf(
                        json + n, ",{\"id\":%u,\"content\":\"%.*sc\"}", id++, i,
                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        sprintf(json + n, "]}");
        ck_assert_msg(tokenizer_new(json, strlen(json), &tokenizer, &why) == 0, "%s", why.text);
        for (size_t part = 0; part < ARRAY_SIZE(PARTS); part++) {
                size_t n_part = strlen(PARTS[part]);

                for (size_t i = 0; i < N; i++)
                        text[i] = (uint8_t)PARTS[part][i % n_part];
                ck_assert_int_eq(tokenizer_encode(tokenizer, encoder, text, N, SIZE_MAX, &tokens, &n_tokens, &why), 0);
        }
        token_encoder_free(encoder);
        tokenizer_unref(tokenizer);
}
END_TEST

static bool is_interested(const void *userdata) {
        unsigned *n_left = (unsigned *)(uintptr_t)userdata;

        return *n_left > 0 && (*n_left)-- > 0;
}

/* By each kind: within the normalizer, the search for added tokens, the patterns, a long word, and from word to word.
 */
START_TEST(what_nobody_wants_any_more_is_given_up) {
        enum {
                N = 1 << 20
        };
        static const char *const PARTS[] = { "a", "a ", "e\xcc\x81 " };
        struct tokenizer *tokenizer = load(KINDS[_i]);
        struct token_encoder *encoder = new_encoder();
        _cleanup_(freep) uint8_t *text = malloc(N);

        for (size_t part = 0; part < ARRAY_SIZE(PARTS); part++) {
                size_t n_part = strlen(PARTS[part]), n = N / n_part * n_part, n_tokens;
                unsigned n_left = part == 1 ? 2 : 0; /* words are many */
                struct wanting wanting = { .is_wanted = is_interested, .userdata = &n_left };
                const uint32_t *tokens;

                for (size_t i = 0; i < n; i++)
                        text[i] = (uint8_t)PARTS[part][i % n_part];
                token_encoder_set_wanting(encoder, &wanting);
                ck_assert_msg(tokenizer_encode(tokenizer, encoder, text, n, SIZE_MAX, &tokens, &n_tokens, &why) ==
                                      -ECANCELED,
                              "%s of %s", PARTS[part], KINDS[_i]);
                ck_assert_uint_eq(n_left, 0);
                token_encoder_set_wanting(encoder, NULL);
                ck_assert_int_eq(tokenizer_encode(tokenizer, encoder, text, 1000 / n_part * n_part, SIZE_MAX, &tokens,
                                                  &n_tokens, &why),
                                 0);
        }
        token_encoder_free(encoder);
        tokenizer_unref(tokenizer);
}
END_TEST

/* ---- refused --------------------------------------------------------------------------------------------------- */

#define WORDS       "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"a\":1}}"
#define PAIRS(MORE) "\"model\":{\"type\":\"BPE\"," MORE "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"

static const struct {
        const char *json, *why;
} REFUSED[] = {
        { "[]", "is not an object" },
        { "{", "byte 1: the text ends where the rest of an array or object was expected" },
        { "{}", "model: is missing" },
        { "{\"model\":{}}", "model: the type \"\" is not supported; supported: BPE, WordPiece" },
        { "{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}",
          "model: the type \"Unigram\" is not supported; supported: BPE, WordPiece" },
        { "{\"speed\":1," WORDS "}", "has a member \"speed\", which is not supported" },
        { "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"x\",\"vocab\":{\"u\":0}}}",
          "model.unk_token: is not in the vocabulary" },
        { "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"vocab\":{\"u\":-1}}}",
          "model.vocab: \"u\" is not a token with its number" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}", "model.merges: is not an array" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}",
          "model.merges[0]: what it makes is not in the vocabulary" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\",[\"a\"]]}}",
          "model.merges[0]: what it makes is not in the vocabulary" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}}",
          "model.merges[0]: is not two tokens" },
        { "{" PAIRS("\"dropout\":0.1,") "}", "model.dropout: is not supported: tokens would be drawn" },
        { "{" PAIRS("\"byte_fallback\":1,") "}", "model.byte_fallback: is neither true nor false" },
        { "{" PAIRS("\"continuing_subword_prefix\":\"##\",") "}",
          "model.continuing_subword_prefix: is not supported for BPE" },
        { "{" WORDS ",\"normalizer\":{\"type\":\"Nmt\"}}",
          "normalizer: the type \"Nmt\" is not supported; supported: BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, "
          "Strip, StripAccents, Replace, Prepend, Sequence" },
        { "{" WORDS ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"Replace\","
          "\"pattern\":{\"Regex\":\"(a\"},\"content\":\"\"}]}}",
          "normalizer.normalizers[1].pattern.Regex: byte 3 of the regular expression \"(a\": a group without an end is "
          "not supported" },
        { "{" WORDS
          ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a+?\"},\"behavior\":\"Isolated\"}}",
          "pre_tokenizer.pattern.Regex: byte 3 of the regular expression \"a+?\": a count of a count, or a lazy one is "
          "not supported" },
        { "{" WORDS ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Cut\"}}",
          "pre_tokenizer.behavior: is \"Cut\"; supported: Removed, Isolated, Contiguous, MergedWithPrevious, "
          "MergedWithNext" },
        { "{" WORDS ",\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}",
          "model: WordPiece after the pre_tokenizer ByteLevel is not supported" },
        { "{" WORDS ",\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}}",
          "pre_tokenizer: the type \"UnicodeScripts\" is not supported; supported: BertPreTokenizer, ByteLevel, Digits, "
          "Metaspace, Punctuation, Split, WhitespaceSplit, Sequence" },
        { "{" WORDS ",\"added_tokens\":[{\"id\":1,\"content\":\"new\"}]}",
          "added_tokens[0].id: is 1, and its content is token 2" },
        { "{" WORDS ",\"added_tokens\":[{\"id\":0,\"content\":\"a\"}]}",
          "added_tokens[0].id: is 0, and its content is token 1" },
        { "{" WORDS ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[],\"special_tokens\":{}}}",
          "post_processor.single: does not name its text once" },
        { "{" WORDS ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\","
          "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":{}}}",
          "post_processor.single[0].SpecialToken.id: is not among the special_tokens" },
        { "{" WORDS ",\"post_processor\":{\"type\":\"Other\"}}",
          "post_processor: the type \"Other\" is not supported; supported: TemplateProcessing, BertProcessing, "
          "RobertaProcessing, ByteLevel, Sequence" },
};

START_TEST(what_is_not_supported_is_named) {
        struct tokenizer *tokenizer = NULL;
        int r = tokenizer_new(REFUSED[_i].json, strlen(REFUSED[_i].json), &tokenizer, &why);

        ck_assert_int_lt(r, 0);
        ck_assert_str_eq(why.text, REFUSED[_i].why);
}
END_TEST

/* ---- patterns -------------------------------------------------------------------------------------------------- */

/* All matches of a pattern, each in brackets. */
static const struct {
        const char *pattern, *text, *found;
} PATTERNS[] = {
        { "a|ab", "abab", "[a]b[a]b" },
        { "ab|a", "abaab", "[ab][a][ab]" },
        { "\\s+(?!\\S)|\\s+", "a   b  ", "a[  ][ ]b[  ]" },
        { "\\p{N}{1,3}", "1234567x12", "[123][456][7]x[12]" },
        { "(?i:'s|'re)x?", "'S'Rex's", "['S]['Rex]['s]" },
        { "(?i:[sd])", "sSdDt\xc5\xbf", "[s][S][d][D]t[\xc5\xbf]" },
        { "[^\\s\\p{L}\\p{N}]+", "a!?\xe2\x82\xac b1", "a[!?\xe2\x82\xac] b1" },
        { "[a-c\\]\\-]+", "xa-b]d", "x[a-b]]d" },
        { "a*+a", "aaa", "aaa" },
        { "a*a", "aaa", "[aaa]" },
        { "(?:ab|a)?b", "abb ab b", "[abb] [ab] [b]" },
        { "a(?=b)", "acab", "ac[a]b" },
        { "\\x41\\u0042\\x{1F600}", "AB\xf0\x9f\x98\x80", "[AB\xf0\x9f\x98\x80]" },
        { "\\P{L}\\p{Lu}.", "1Ab Ac\nA\n", "[1Ab][ Ac]\nA\n" },
        { "[\\S&]{2,}", "ab c de", "[ab] c [de]" },
};

START_TEST(patterns_match) {
        const char *text = PATTERNS[_i].text;
        size_t n = strlen(text), at = 0, begin, end;
        struct pattern_work work = { 0 };
        struct token_pattern *pattern = NULL;
        char found[128] = "";
        size_t n_found = 0;

        ck_assert_msg(
                pattern_new((const uint8_t *)PATTERNS[_i].pattern, strlen(PATTERNS[_i].pattern), &pattern, &why) == 0,
                "%s", why.text);
        pattern_work_begin(&work, n);
        while (pattern_find(pattern, &work, (const uint8_t *)text, n, at, &begin, &end) == 1) {
                n_found += (size_t)snprintf(found + n_found, sizeof(found) - n_found, "%.*s[%.*s]", (int)(begin - at),
                                            text + at, (int)(end - begin), text + begin);
                at = end;
        }
        snprintf(found + n_found, sizeof(found) - n_found, "%s", text + at);
        ck_assert_str_eq(found, PATTERNS[_i].found);
        pattern_free(pattern);
}
END_TEST

/* Each match is found by looking at the whole rest of the text. */
START_TEST(a_pattern_gives_up_over_many_matches) {
        static const char PATTERN[] = "a+b|a";
        enum {
                N = 100000
        };
        struct token_pattern *pattern = NULL;
        static uint8_t text[N];
        struct pattern_work work = { 0 };
        size_t at = 0, begin;
        int r;

        memset(text, 'a', N);
        ck_assert_int_eq(pattern_new((const uint8_t *)PATTERN, strlen(PATTERN), &pattern, &why), 0);
        pattern_work_begin(&work, N);
        while ((r = pattern_find(pattern, &work, text, N, at, &begin, &at)) == 1)
                ck_assert_uint_lt(at, 1000);
        ck_assert_int_eq(r, -E2BIG);
        pattern_free(pattern);
}
END_TEST

/* Counts within counts: each more of them would take a thousand times as long. */
START_TEST(a_pattern_gives_up) {
        static const char PATTERN[] = "a*a*a*a*a*a*a*a*a*b";
        enum {
                N = 2000
        };
        struct token_pattern *pattern = NULL;
        uint8_t text[N];
        struct pattern_work work = { 0 };
        size_t begin, end;

        memset(text, 'a', N);
        ck_assert_int_eq(pattern_new((const uint8_t *)PATTERN, strlen(PATTERN), &pattern, &why), 0);
        pattern_work_begin(&work, N);
        ck_assert_int_eq(pattern_find(pattern, &work, text, N, 0, &begin, &end), -E2BIG);
        pattern_free(pattern);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "equal", tokens_are_those_of_the_library, ARRAY_SIZE(KINDS) },
                { "equal", an_encoder_serves_several_tokenizers },
                { "long", a_long_word_takes_linear_time, ARRAY_SIZE(KINDS) },
                { "long", a_word_may_be_too_long },
                { "long", many_added_tokens_take_linear_time },
                { "long", what_nobody_wants_any_more_is_given_up, ARRAY_SIZE(KINDS) },
                { "long", texts_that_somebody_chose_have_places_of_their_own },
                { "refused", what_is_not_supported_is_named, ARRAY_SIZE(REFUSED) },
                { "pattern", patterns_match, ARRAY_SIZE(PATTERNS) },
                { "pattern", a_pattern_gives_up },
                { "pattern", a_pattern_gives_up_over_many_matches },
        };

        return suite_run("tokenizer", rows, sizeof(rows) / sizeof(rows[0]));
}
