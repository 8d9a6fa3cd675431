#include "daemon/codec/texts/token_tools.h"

#include "daemon/tokenize/tokenizer.h"

size_t token_tools_bytes(const struct token_tools *tools) {
        return tools->account.n_bytes;
}

void token_tools_trim(struct token_tools *tools) {
        token_encoder_free(tools->encoder);
        tools->encoder = NULL;
        for (unsigned i = 0; i < TOKEN_TEXTS_KEPT; i++) {
                tools->texts[i].serial = 0;
                grow_free(&tools->texts[i].bytes);
                grow_free(&tools->texts[i].tokens);
        }
        grow_free(&tools->fresh);
}
