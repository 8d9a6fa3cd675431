#include "daemon/tokenize/model.h"

#include <errno.h>
#include <string.h>

static const struct model_type *const TYPES[] = { &MODEL_BPE, &MODEL_WORDPIECE };

/* Before "type" was written, a BPE had merges, and WordPiece the longest word. */
static int model_find_type(const struct json_node *node, const struct model_type **ret_type, struct why *why) {
        struct json_token value;
        char type[64];
        int r = json_node_type(node, type, why);

        if (r < 0)
                return r;
        if (!type[0]) {
                r = json_node_find(node, "merges", &value, why);
                if (r == 0)
                        strcpy(type, "BPE");
                else if (r == JSON_ABSENT)
                        r = json_node_find(node, "max_input_chars_per_word", &value, why);
                if (r == 0 && !type[0])
                        strcpy(type, "WordPiece");
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < sizeof(TYPES) / sizeof(TYPES[0]); i++)
                if (strcmp(type, TYPES[i]->name) == 0) {
                        *ret_type = TYPES[i];
                        return 0;
                }
        return json_node_refuse(node, -EINVAL, why, "the type \"%s\" is not supported; supported: BPE, WordPiece",
                                type);
}

int model_read(const struct json_node *node, bool is_byte_level, struct model *ret_model, struct why *why) {
        int r;

        *ret_model = (struct model){ 0 };
        if (!json_node_is_set(node))
                return json_node_refuse(node, -EINVAL, why, "is missing");
        r = model_find_type(node, &ret_model->type, why);
        if (r == 0)
                r = ret_model->type->read(node, is_byte_level, ret_model, why);
        if (r < 0)
                model_fini(ret_model);
        return r;
}

void model_fini(struct model *model) {
        if (model->type)
                model->type->free(model);
        vocabulary_fini(&model->vocabulary);
        *model = (struct model){ 0 };
}

uint64_t model_bytes(const struct model *model) {
        return vocabulary_bytes(&model->vocabulary) + model->type->bytes(model);
}

void model_memory_free(struct model_memory *memory) {
        grow_free(&memory->tokens);
        grow_free(&memory->symbols);
        grow_free(&memory->heap);
}
