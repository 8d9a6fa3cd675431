#include "daemon/data/formats/arrow/table/dictionary.h"

#include <stdlib.h>

struct arrow_dictionary *arrow_dictionary_find(const struct arrow_dictionaries *dictionaries, int64_t id) {
        struct arrow_dictionary *all = (void *)dictionaries->all.bytes;

        for (size_t i = 0; i < dictionaries->all.n_bytes / sizeof(*all); i++)
                if (all[i].id == id)
                        return &all[i];
        return NULL;
}

struct arrow_dictionary *arrow_dictionary_get(struct arrow_dictionaries *dictionaries, int64_t id) {
        struct arrow_dictionary *found = arrow_dictionary_find(dictionaries, id);
        struct arrow_dictionary made = { .id = id };

        if (found)
                return found;
        if (growing_append(&dictionaries->all, &made, sizeof(made)) < 0)
                return NULL;
        return arrow_dictionary_find(dictionaries, id);
}

void arrow_dictionary_clear(struct arrow_dictionary *dictionary) {
        struct growing *plain = (void *)dictionary->plain.bytes;

        for (size_t i = 0; i < dictionary->plain.n_bytes / sizeof(*plain); i++)
                growing_fini(&plain[i]);
        growing_clear(&dictionary->plain);
        growing_clear(&dictionary->cells);
        growing_clear(&dictionary->numbers);
        growing_clear(&dictionary->valid);
        dictionary->n = dictionary->n_plain = 0;
}

void arrow_dictionaries_fini(struct arrow_dictionaries *dictionaries) {
        struct arrow_dictionary *all = (void *)dictionaries->all.bytes;

        for (size_t i = 0; i < dictionaries->all.n_bytes / sizeof(*all); i++) {
                arrow_dictionary_clear(&all[i]);
                growing_fini(&all[i].plain);
                growing_fini(&all[i].cells);
                growing_fini(&all[i].numbers);
                growing_fini(&all[i].valid);
        }
        growing_fini(&dictionaries->all);
}
