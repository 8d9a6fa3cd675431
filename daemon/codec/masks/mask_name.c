#include "daemon/codec/masks/mask_name.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/text/grammar.h"

bool mask_is_name(const char *name) {
        static const char *const WORDS[] = { "mask", "masks", "seg", "segmentation" };

        for (;;) {
                size_t n = strcspn(name, "._-/");

                for (size_t i = 0; i < ARRAY_SIZE(WORDS); i++)
                        if (grammar_is((struct grammar_word){ name, n }, WORDS[i]))
                                return true;
                if (name[n] == '\0')
                        return false;
                name += n + 1;
        }
}
