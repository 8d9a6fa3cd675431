#include "daemon/codec/steps/token_steps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/steps/field_steps.h"
#include "proto/base/typed.h"
#include "proto/text/step_values.h"

enum {
        NAME,
        MAX_LENGTH,
        TRUNCATION,
        STRIDE,
        WINDOW,
        SPECIAL,
        DIGEST,
        N_ARGUMENTS
};

static const char *const TRUNCATIONS[N_TOKEN_TRUNCATIONS] = { "right", "left", "none" };
static const char *const WINDOWS[N_TOKEN_WINDOWS] = { "first", "random" };
static const char *const BOOLS[] = { "false", "true" };

const struct kind field_step_tokens = {
        .name = "tokens",
        .doc = "Text as the numbers of its tokens, int64, ragged; with `to(int32)` after it int32. `json(path)` or "
               "`text` may stand before it. A member must be a string or a number, and a whole column of JSON "
               "(messages, an object) is refused, because its brackets would become tokens, too. `tokenizer` is the "
               "name of one in the folder that the setting `tokenizers` names (see dataloaderd.conf(5)), such as "
               "`bert-base-uncased` for bert-base-uncased.json or bert-base-uncased/tokenizer.json. The tokens are "
               "those of Hugging Face's library tokenizers, 0.23, with the same file.\n\n"
               "`max_length` is the most tokens of a sample, those that the file puts around a text counted. It has "
               "no default: either `max_length` or `truncation=none` must be written, so that no text is cut "
               "without a word. `truncation` says what a longer text loses: right its end, left its beginning; "
               "`none` makes it a damaged sample, or, without `max_length`, leaves it as it is. How many texts were "
               "cut, and about how many tokens they lost, is in the counters of `dlctl jobs` and in Python's "
               "stats(). With `window=random`, a longer text delivers one of its windows, each `max_length` long, "
               "of which the first `stride` tokens of text are the last ones of the window before; it is drawn anew "
               "in each epoch. The windows are those that tokenizers calls overflowing. `special=false` leaves out "
               "the tokens that the file puts around a text. What the file says of truncation and padding is passed "
               "over: to pad, write `pad` after the step, as in `text: tokens(bert-base-uncased, max_length=512) "
               "pad(value=0)`.\n\n"
               "The normal spelling names the file's `digest`, so ranks of a job whose files differ are refused; a "
               "pipeline may name it, too.\n\n"
               "Supported are the models BPE (also with bytes, as of GPT-2, and with byte_fallback) and WordPiece; "
               "the normalizers BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Replace and "
               "Prepend; the pre_tokenizers BertPreTokenizer, ByteLevel, Digits, Metaspace, Punctuation, Split and "
               "WhitespaceSplit; the post_processors TemplateProcessing, BertProcessing, RobertaProcessing and "
               "ByteLevel; sequences of them; and added tokens. Anything else (Unigram, dropout, regular "
               "expressions that look back or have lazy counts) is refused when the rank attaches, with its path in "
               "the file. A piece of text of more than 4 MiB that the pre_tokenizer does not cut makes a damaged "
               "sample, and so does a text whose tokens take more memory to make than a quarter of the setting "
               "`memory_limit` (1 GiB at most): several times the text's length; with `truncation=right` much less, "
               "unless the normalizer changes the text. Tokens are made anew in each epoch, and not kept: a CPU "
               "makes about 10 million of them a second with a vocabulary of BERT, half of that with one of GPT-2.",
        .like = "tokenizers.Tokenizer.encode",
        .example = "tokens(bert, max_length=512)",
        .needs = "text",
        .arguments = ARGUMENTS([NAME] = { ARGUMENT_NAME, "tokenizer", .form = "the name of a tokenizer" },
                               [MAX_LENGTH] = { ARGUMENT_WHOLE, "max_length", NULL, 1, TOKENS_LENGTH_MAX,
                                                .is_optional = true, .needs_key = true },
                               [TRUNCATION] = { ARGUMENT_CHOICE, "truncation", "right", .choices = TRUNCATIONS,
                                                .n_choices = N_TOKEN_TRUNCATIONS, .needs_key = true },
                               [STRIDE] = { ARGUMENT_WHOLE, "stride", "0", 0, TOKENS_LENGTH_MAX, .needs_key = true },
                               [WINDOW] = { ARGUMENT_CHOICE, "window", "first", .choices = WINDOWS,
                                            .n_choices = N_TOKEN_WINDOWS, .needs_key = true },
                               [SPECIAL] = { ARGUMENT_FLAG, "special", "true", .needs_key = true },
                               [DIGEST] = { ARGUMENT_NAME, "digest", .form = "the 16 digits of the tokenizer's digest",
                                            .is_optional = true, .needs_key = true }),
};
static const struct kind_family TOKEN_STEPS = { .noun = "step for text" };

/* What contradicts each other. */
static int token_steps_check(const struct token_steps *steps, bool has_stride, struct why *why) {
        bool is_whole = steps->truncation == TOKENS_WHOLE;

        if (!is_whole && steps->max_length == 0)
                return why_set(why, -EINVAL,
                               "pipeline: tokens(%s) does not say what becomes of long texts: write max_length=N (a "
                               "longer text loses its end), or truncation=none (every text stays whole)",
                               steps->name);
        if (steps->window == TOKENS_RANDOM && is_whole)
                return why_set(why, -EINVAL, "pipeline: tokens(window=random) needs truncation=right or left");
        if (has_stride && steps->window != TOKENS_RANDOM)
                return why_set(why, -EINVAL, "pipeline: tokens(stride=...) is for window=random");
        return 0;
}

/* What follows the step: the type of its numbers. */
static int token_steps_read_to(struct grammar *grammar, struct grammar_steps steps, struct token_steps *ret_steps,
                               struct why *why) {
        static const char *const DTYPES[] = { "int64", "int32" };
        uint32_t n_to = 0;

        if (steps.n > 0 && grammar_is(steps.at[0].name, "to") && steps.at[0].n_arguments == 1) {
                struct grammar_word dtype = steps.at[0].arguments[0].value;
                size_t i = typed_find(dtype.at, dtype.n, DTYPES, 2);

                n_to = i < 2 && !steps.at[0].stop;
                ret_steps->is_int32 = i == 1;
        }
        return n_to == steps.n ? 0
                               : grammar_expect(grammar, steps.at[n_to].name.at,
                                                "to(int32), to(int64), how samples become a batch, or the end", why);
}

int token_steps_read(struct grammar *grammar, struct grammar_steps steps, struct token_steps *ret_steps,
                     struct why *why) {
        _Alignas(8) uint8_t memory[VALUE_STORE_BYTES(DLP_PIPELINE_MAX, 1)];
        struct value_store store = { memory, sizeof(memory) };
        const struct values_reader reader = { &TOKEN_STEPS, grammar, &store, why };
        struct value values[N_ARGUMENTS];
        struct token_steps read = { 0 };
        struct grammar_word name, digest;
        int r = values_read(&reader, &field_step_tokens, &steps.at[0], values);

        if (r < 0)
                return r;
        name = values[NAME].written;
        digest = values[DIGEST].written;
        if (!tokenizers_is_name(name.at, name.n))
                return grammar_expect(grammar, name.at,
                                      "the name of a tokenizer: letters, digits, \"_\", \"-\", \".\" and \"/\", no "
                                      "part of which begins with \".\"",
                                      why);
        if (digest.n > 0 &&
            (digest.n != TOKENIZER_DIGEST_MAX - 1 || strspn(values[DIGEST].text, "0123456789abcdef") < digest.n))
                return grammar_refuse(
                        grammar, digest.at, why,
                        "digest: \"%.*s\" is not allowed; expected the 16 digits of the tokenizer's digest",
                        grammar_shown(digest), digest.at);
        strcpy(read.name, values[NAME].text);
        strcpy(read.digest, digest.n > 0 ? values[DIGEST].text : "");
        read.column = grammar_column(grammar, name.at);
        read.max_length = (uint32_t)values[MAX_LENGTH].whole;
        read.truncation = (enum token_truncation)values[TRUNCATION].choice;
        read.stride = (uint32_t)values[STRIDE].whole;
        read.window = (enum token_window)values[WINDOW].choice;
        read.has_special = values[SPECIAL].flag;
        r = token_steps_read_to(grammar, (struct grammar_steps){ steps.at + 1, steps.n - 1 }, &read, why);
        if (r == 0)
                r = token_steps_check(&read, values[STRIDE].is_given, why);
        if (r == 0)
                *ret_steps = read;
        return r;
}

char *token_steps_text(const struct token_steps *steps) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        fprintf(stream, "tokens(%s", steps->name);
        if (steps->max_length > 0)
                fprintf(stream, ", max_length=%u", steps->max_length);
        fprintf(stream, ", truncation=%s", TRUNCATIONS[steps->truncation]);
        if (steps->window == TOKENS_RANDOM)
                fprintf(stream, ", stride=%u, window=random", steps->stride);
        fprintf(stream, ", special=%s, digest=%s)%s", BOOLS[steps->has_special], steps->digest,
                steps->is_int32 ? " to(int32)" : "");
        if (fclose(stream) != 0) {
                free(text);
                return NULL;
        }
        return text;
}
