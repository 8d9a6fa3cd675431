/* Tokens: text, as a tokenizer numbers it. Each sample has its own number of them.
 *
 * How many there are is known only when the text is encoded, so that is done when the field is opened, and rendering
 * copies. A ragged field is opened twice: what the last texts became is kept for the second time. */

#include "daemon/codec/texts/tokens.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/codec_tools.h"
#include "daemon/tokenize/normalizer.h"
#include "proto/base/cleanup.h"
#include "proto/base/shown/amounts.h"
#include "proto/order/philox.h"

/* A thread counts the tokens of the first 15 cut texts of a codec, and then those of every 15th. An odd number: of two
 * codecs that share a place and take turns each is counted as often. */
#define CUT_COUNTED 15u

/* What is made of a text usually fits in eight times its length: the text, twice, what the normalizer makes of it, a
 * token for each three bytes or so, and the room in arrays that grow. A tokenizer that does not cut a text, or
 * writes its characters in another form, takes more. Where more is needed and reserved, the text is encoded again. */
#define USUAL_FACTOR  8u
#define DOUBLED_MAX   4u
#define ENCODER_BYTES (1u << 20) /* of a new one; more than it has */

/* ---- making ---------------------------------------------------------------------------------------------------- */

static int find_tokenizer(struct codec_tokens *tokens, struct at_hand *tokenizers, struct why *why) {
        struct token_steps *steps = &tokens->steps;
        const char *digest;
        struct why what;
        int r;

        if (!tokenizers)
                return why_set(why, -EINVAL, "pipeline, column %zu: there are no tokenizers here", steps->column);
        r = at_hand_get(tokenizers, steps->name, &tokens->tokenizer, &what);
        if (r < 0)
                return why_set(why, r == -ENOMEM || r == -EAGAIN ? r : -EINVAL, "pipeline, column %zu: %s",
                               steps->column, what.text);
        digest = tokenizer_digest(tokens->tokenizer);
        if (steps->digest[0] && strcmp(steps->digest, digest) != 0)
                return why_set(
                        why, -EINVAL,
                        "pipeline, column %zu: the digest of tokenizer %s is %s, and %s is expected: the file has "
                        "changed",
                        steps->column, steps->name, digest, steps->digest);
        memcpy(steps->digest, digest, sizeof(steps->digest));
        return 0;
}

static uint32_t n_special_of(const struct codec_tokens *tokens) {
        const struct frame *frame = tokenizer_frame(tokens->tokenizer);

        return tokens->steps.has_special ? frame->n_before + frame->n_after : 0;
}

/* Is there room for tokens of the text, and for new ones in each window? */
static int check_lengths(const struct codec_tokens *tokens, struct why *why) {
        const struct token_steps *steps = &tokens->steps;
        uint32_t n_special = n_special_of(tokens);

        if (steps->max_length > 0 && steps->max_length <= n_special)
                return why_set(why, -EINVAL,
                               "pipeline: tokens(max_length=%u): %u special tokens leave no room for the text; use a "
                               "larger one, or special=false",
                               steps->max_length, n_special);
        if (steps->max_length > 0 && steps->stride >= steps->max_length - n_special)
                return why_set(why, -EINVAL,
                               "pipeline: tokens(stride=%u): a window has %u tokens of the text, stride must be less",
                               steps->stride, steps->max_length - n_special);
        return 0;
}

int tokens_settle(struct codec *codec, const struct codec_named *named, struct why *why) {
        static _Atomic uint64_t n_made;
        struct codec_tokens *tokens = &codec->tokens;
        _cleanup_(freep) char *own = NULL;
        const char *before;
        int r = 0;

        if (!(named && named->tokenizers && named->tokenizers->are_elsewhere)) {
                r = find_tokenizer(tokens, named ? named->tokenizers : NULL, why);
                if (r == 0)
                        r = check_lengths(tokens, why);
        }
        if (r < 0)
                return r;
        tokens->serial = atomic_fetch_add_explicit(&n_made, 1, memory_order_relaxed) + 1;
        before = strcmp(codec_text(tokens->text), "text") == 0 ? "" : codec_text(tokens->text);
        own = token_steps_text(&tokens->steps);
        free(codec->text);
        if (!own || asprintf(&codec->text, "%s%s%s", before, before[0] ? " " : "", own) < 0) {
                codec->text = NULL;
                return why_errno(why, -ENOMEM, "pipeline");
        }
        return 0;
}

static void tokens_fini(struct codec *codec) {
        tokenizer_unref(codec->tokens.tokenizer);
        codec_free(codec->tokens.text);
}

static uint64_t token_bytes(const struct codec *codec) {
        return codec->tokens.steps.is_int32 ? sizeof(int32_t) : sizeof(int64_t);
}

/* Room for the longest text's tokens, or for max_length of them. */
static int tokens_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                       struct why *why) {
        const struct codec_tokens *tokens = &codec->tokens;
        uint64_t size = token_bytes(codec), growth = tokenizer_most(tokens->tokenizer, 1);
        uint64_t n_special = n_special_of(tokens), longest;
        struct field_form text = { 0 };
        int r = codec_form(tokens->text, terms, &text, why);

        if (r < 0)
                return r;
        ret_form->dtype = tokens->steps.is_int32 ? DLP_DTYPE_INT32 : DLP_DTYPE_INT64;
        ret_form->n_dims = 1;
        ret_form->shape[0] = -1;
        ret_form->how = COLLATE_RAGGED;
        ret_form->unit_bytes = size;
        ret_form->takes_share = text.takes_share && tokens->steps.max_length == 0;
        ret_form->more_bytes = layout_align((n_special + 1) * size);
        if (__builtin_mul_overflow(text.max_bytes, growth, &longest) ||
            __builtin_add_overflow(longest, n_special, &longest))
                longest = UINT64_MAX;
        if (tokens->steps.max_length > 0 && longest > tokens->steps.max_length)
                longest = tokens->steps.max_length;
        if (__builtin_mul_overflow(longest, size, &ret_form->max_bytes))
                return why_set(why, -EOVERFLOW, "the texts of field %s are too large for tokens without max_length",
                               codec->field.name);
        if (__builtin_mul_overflow(text.together_bytes, growth * size, &ret_form->together_bytes))
                ret_form->together_bytes = 0;
        return 0;
}

/* ---- encoding -------------------------------------------------------------------------------------------------- */

/* The text, in tools->fresh. Returns 0, JSON_ABSENT if there is none, or an error. */
static int tokens_read_text(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                            struct why *why) {
        const struct codec *text = codec->tokens.text;
        struct grow *fresh = &tools->tokens.fresh;
        struct codec_opened opened;
        int r = codec_open(text, tools, input, &opened, why);

        if (r < 0)
                return r;
        if (opened.is_absent)
                return JSON_ABSENT;
        if (opened.n_bytes > NORMAL_BYTES_MAX)
                return why_set(why, -EFBIG, "is a text of %llu bytes, tokens are made of at most %llu",
                               (unsigned long long)opened.n_bytes, (unsigned long long)NORMAL_BYTES_MAX);
        tools->tokens.n_fresh = opened.n_bytes;
        fresh->account = &tools->tokens.account;
        if (grow_reserve(fresh, opened.n_bytes + 1) < 0)
                return why_errno(why, -ENOMEM, "a text of %llu bytes", (unsigned long long)opened.n_bytes);
        fresh->n = opened.n_bytes;
        return codec_render(text, tools, input, fresh->items, why);
}

/* More tokens than these need not be known: of a longer text only its beginning is used. One more tells that it is
 * longer. */
static size_t wanted(const struct codec_tokens *tokens) {
        const struct token_steps *steps = &tokens->steps;

        if (steps->max_length == 0 || steps->window != TOKENS_FIRST || steps->truncation == TOKENS_LEFT)
                return SIZE_MAX;
        return (size_t)steps->max_length - n_special_of(tokens) + 1;
}

static int tokens_encode(const struct codec_tokens *tokens, struct token_tools *tools, struct wanting *wanting,
                         struct token_text *into, struct why *why) {
        struct grow bytes = into->bytes;
        const uint32_t *found;
        size_t n;
        int r;

        into->serial = 0;
        if (!tools->encoder && token_encoder_new(&tools->account, &tools->encoder) < 0)
                return why_errno(why, -ENOMEM, "the memory of a tokenizer");
        token_encoder_set_wanting(tools->encoder, wanting);
        r = tokenizer_encode(tokens->tokenizer, tools->encoder, tools->fresh.items, tools->fresh.n, wanted(tokens),
                             &found, &n, why);
        if (r < 0)
                return r;
        into->tokens.account = &tools->account;
        token_encoder_swap(tools->encoder, &into->tokens);
        into->bytes = tools->fresh;
        tools->fresh = bytes;
        into->serial = tokens->serial;
        return 0;
}

static struct token_text *tokens_place_of(const struct codec *codec, struct codec_tools *tools) {
        return &tools->tokens.texts[codec->tokens.serial % TOKEN_TEXTS_KEPT];
}

static uint64_t usual_bytes(const struct token_text *text, size_t n) {
        return (uint64_t)n * USUAL_FACTOR << text->n_doubled;
}

/* Finds the tokens of the sample's text, in the place that this codec has among those that are kept. `tries`: also if
 * there is less memory than is usual. */
static int find_tokens(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                       bool tries, struct why *why) {
        const struct codec_tokens *tokens = &codec->tokens;
        struct grow_account *account = &tools->tokens.account;
        struct token_text *kept = tokens_place_of(codec, tools);
        const struct grow *fresh = &tools->tokens.fresh;
        int r;

        if (tokens->serial > kept->newest) {
                kept->newest = tokens->serial;
                kept->n_cut = kept->n_doubled = 0;
        }
        r = tokens_read_text(codec, tools, input, why);
        if (r != 0 || (kept->serial == tokens->serial && kept->bytes.n == fresh->n &&
                       memcmp(kept->bytes.items, fresh->items, fresh->n) == 0))
                return r;
        if (!tries && account->n_bytes - fresh->n_room + usual_bytes(kept, fresh->n) > account->n_most) {
                account->was_full = true;
                return -ENOMEM;
        }
        stage_enter(&tools->clock, STAGE_TOKENS);
        return tokens_encode(tokens, &tools->tokens, &tools->wanting, kept, why);
}

/* What to ask for. */
static uint64_t more_bytes(const struct codec_input *input, struct token_text *text, size_t n) {
        uint64_t need;

        while ((need = ENCODER_BYTES + usual_bytes(text, n)) <= input->allowed_bytes && text->n_doubled < DOUBLED_MAX)
                text->n_doubled++;
        return need > input->allowed_bytes && need < input->most_bytes ? need : input->most_bytes;
}

/* The same with as much memory as is allowed; what the tools keep is given back if it is in the way. May also return
 * CODEC_NEEDS_MORE. */
static int find_within(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                       uint64_t *ret_need, struct why *why) {
        struct grow_account *account = &tools->tokens.account;
        uint64_t allowed = input->allowed_bytes > 0 ? input->allowed_bytes : UINT64_MAX;
        char text[BYTES_TEXT_MAX], most[BYTES_TEXT_MAX];

        for (unsigned i = 0; i < 2; i++) {
                uint64_t beside = codec_tools_bytes(tools) - account->n_bytes;
                int r;

                account->n_most = allowed > beside ? allowed - beside : 0;
                account->was_full = false;
                r = find_tokens(codec, tools, input, i > 0 && allowed >= input->most_bytes, why);
                if (r != -ENOMEM || !account->was_full)
                        return r;
                codec_tools_trim(tools);
        }
        if (allowed < input->most_bytes) {
                *ret_need = more_bytes(input, tokens_place_of(codec, tools), tools->tokens.n_fresh);
                return CODEC_NEEDS_MORE;
        }
        format_bytes(text, tools->tokens.n_fresh);
        format_bytes(most, allowed);
        return why_set(why, -EFBIG,
                       "is a text of %s: making its tokens takes more than %s, which is allowed (a quarter of "
                       "memory_limit, 1 GiB at most); cut it into shorter texts",
                       text, most);
}

/* Which tokens of the text are delivered. */
struct token_range {
        size_t begin, n;
};

/* A window begins `step` tokens after the one before it; from the right end, if the beginning is to be left out. */
static struct token_range choose_window(const struct codec *codec, const struct codec_input *input, size_t n) {
        const struct token_steps *steps = &codec->tokens.steps;
        size_t n_max = steps->max_length - n_special_of(&codec->tokens), step = n_max - steps->stride;
        size_t n_windows = n > n_max ? 1 + (n - n_max + step - 1) / step : 1, k = 0, begin;
        struct dlp_philox philox;

        if (n <= n_max)
                return (struct token_range){ 0, n };
        if (steps->window == TOKENS_RANDOM) {
                dlp_philox_init(&philox, codec_seed(codec, input), input->epoch, input->sample, 0);
                k = dlp_philox_below(&philox, (uint32_t)n_windows);
        }
        begin = k * step;
        if (steps->truncation == TOKENS_RIGHT)
                return (struct token_range){ begin, n - begin < n_max ? n - begin : n_max };
        return n - begin > n_max ? (struct token_range){ n - begin - n_max, n_max }
                                 : (struct token_range){ 0, n - begin };
}

static struct token_range choose_range(const struct codec *codec, const struct codec_input *input, size_t n) {
        return codec->tokens.steps.truncation == TOKENS_WHOLE ? (struct token_range){ 0, n }
                                                              : choose_window(codec, input, n);
}

static size_t n_found(const struct codec *codec, const struct codec_tools *tools) {
        return tools->tokens.texts[codec->tokens.serial % TOKEN_TEXTS_KEPT].tokens.n / sizeof(uint32_t);
}

static int tokens_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                       struct codec_opened *ret_opened, struct why *why) {
        const struct codec_tokens *tokens = &codec->tokens;
        uint64_t n_all;
        size_t n;
        int r = find_within(codec, tools, input, &ret_opened->need_bytes, why);

        if (r < 0 || r == CODEC_NEEDS_MORE)
                return r;
        ret_opened->is_absent = r == JSON_ABSENT;
        ret_opened->need_bytes = 0;
        if (r != 0)
                return 0;
        ret_opened->made_bytes = token_tools_bytes(&tools->tokens);
        n = n_found(codec, tools);
        n_all = choose_range(codec, input, n).n + n_special_of(tokens);
        if (tokens->steps.truncation == TOKENS_WHOLE && tokens->steps.max_length > 0 &&
            n_all > tokens->steps.max_length)
                return why_set(why, -EFBIG, "has more than %u tokens; raise max_length, or let truncation shorten it",
                               tokens->steps.max_length);
        ret_opened->shape[0] = (int64_t)n_all;
        ret_opened->n_bytes = n_all * token_bytes(codec);
        return 0;
}

/* ---- delivering ------------------------------------------------------------------------------------------------- */

static uint8_t *tokens_put(const uint32_t *tokens, size_t n, bool is_int32, uint8_t *out) {
        int64_t *wide = (int64_t *)(void *)out;

        if (is_int32) {
                if (n > 0)
                        memcpy(out, tokens, n * sizeof(*tokens));
                return out + n * sizeof(*tokens);
        }
        for (size_t i = 0; i < n; i++)
                wide[i] = tokens[i];
        return out + n * sizeof(*wide);
}

/* How many tokens the text has in truth, when only a part of them was made. -ECANCELED: what is wanted now is another
 * thing. */
static int n_in_truth(const struct codec_tokens *tokens, struct token_tools *tools, const struct token_text *text,
                      size_t n_made, size_t *ret_n, struct why *why) {
        int r = wanted(tokens) == SIZE_MAX ? -ENODATA
                                           : tokenizer_encode(tokens->tokenizer, tools->encoder, text->bytes.items,
                                                              text->bytes.n, SIZE_MAX, NULL, ret_n, why);

        if (r < 0)
                *ret_n = n_made;
        return r == -ECANCELED ? r : 0;
}

/* Windows that are drawn are not counted: what one epoch leaves out another one has. To know how many tokens are
 * missing the whole text must be encoded, and that can cost many times what the delivered part does, so it is done for
 * some. A text that is left is counted when it is rendered again. */
static int tokens_count_cut(const struct codec *codec, struct codec_tools *tools, struct token_text *text,
                            const struct token_range *range, struct why *why) {
        size_t n_made = n_found(codec, tools), n = n_made;
        uint64_t k = text->n_cut, weight;
        int r = 0;

        if (codec->tokens.steps.window != TOKENS_FIRST || range->n == n_made)
                return 0;
        weight = k < CUT_COUNTED || wanted(&codec->tokens) == SIZE_MAX ? 1 : k % CUT_COUNTED == 0 ? CUT_COUNTED : 0;
        if (weight > 0)
                r = n_in_truth(&codec->tokens, &tools->tokens, text, n_made, &n, why);
        if (r < 0)
                return r;
        text->n_cut++;
        tools->counts.n_texts_cut++;
        tools->counts.n_tokens_cut += weight * (n - range->n);
        return 0;
}

/* The memory may have been freed since the field was opened. */
static int tokens_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                         uint8_t *out, struct why *why) {
        const struct codec_tokens *tokens = &codec->tokens;
        const struct frame *frame = tokenizer_frame(tokens->tokenizer);
        struct token_text *text = tokens_place_of(codec, tools);
        bool has_special = tokens->steps.has_special, is_int32 = tokens->steps.is_int32;
        struct token_range range;
        int r = text->serial == tokens->serial ? 0 : find_tokens(codec, tools, input, true, why);

        if (r != 0)
                return r < 0 ? r : -EBADMSG; /* cannot be absent: it was there when it was opened */
        range = choose_range(codec, input, n_found(codec, tools));
        r = tokens_count_cut(codec, tools, text, &range, why);
        if (r < 0)
                return r;
        out = tokens_put(frame->before, has_special ? frame->n_before : 0, is_int32, out);
        out = tokens_put((const uint32_t *)text->tokens.items + range.begin, range.n, is_int32, out);
        tokens_put(frame->after, has_special ? frame->n_after : 0, is_int32, out);
        return 0;
}

/* Only without max_length: a text that has grown since the index was made. */
static int tokens_refuse_room(const struct codec *codec, const struct codec_opened *opened, uint64_t room_bytes,
                              struct why *why) {
        return why_set(why, -EFBIG,
                       "has %lld tokens, there is room for %llu; name max_length=, as in tokens(%s, "
                       "max_length=512)",
                       (long long)opened->shape[0], (unsigned long long)(room_bytes / token_bytes(codec)),
                       codec->tokens.steps.name);
}

const struct codec_type CODEC_TOKENS = {
        .name = "tokens",
        .fini = tokens_fini,
        .rendering = STAGE_TOKENS,
        .form = tokens_form,
        .open = tokens_open,
        .render = tokens_render,
        .refuse_room = tokens_refuse_room,
};
