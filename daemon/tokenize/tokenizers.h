/* tokenize/tokenizers.h: the tokenizers of a folder, by name. Each is read once, and shared by all who use it.
 *
 * A pipeline names a tokenizer, and this floor finds the file: NAME.json or NAME/tokenizer.json in the folder of the
 * configuration. A name never leads out of it, so that a client can have no other file read; links in the folder are
 * the administrator's. The last few stay in memory when nobody uses them; a file that has changed is read again, and
 * who uses the old one keeps it. One thread's: the main thread's, which waits while a file is read. */
#pragma once

#include <stddef.h>

#include "daemon/base/budget.h"
#include "daemon/tokenize/tokenizer.h"

#define TOKENIZER_NAME_MAX 128u /* with NUL */

struct tokenizers;

/* The tokenizers' memory is reserved in `budget`, which outlives them; NULL: nowhere. -ENOMEM. */
int tokenizers_new(const char *folder, struct budget *budget, struct tokenizers **ret_tokenizers);

/* They are in another process, which makes the tokens: here a pipeline that names some can be read, and its codecs of
 * tokens are never opened. -ENOMEM. */
int tokenizers_elsewhere(struct tokenizers **ret_tokenizers);
bool tokenizers_are_elsewhere(const struct tokenizers *tokenizers);

/* Takes NULL. Who uses a tokenizer keeps it. */
void tokenizers_free(struct tokenizers *tokenizers);

/* Another folder, from the next tokenizers_get() on. -ENOMEM. */
int tokenizers_set_folder(struct tokenizers *tokenizers, const char *folder);

/* Is it a name: parts of letters, digits, "_", "-" and ".", joined by "/", none of which begins with "."? */
bool tokenizers_is_name(const char *name, size_t n);

/* A reference to the tokenizer, whose name tokenizers_is_name(). -ENOENT, -EINVAL, -EBADMSG, -EFBIG, -ENOMEM or what
 * reading gave; `why` names the file. */
int tokenizers_get(struct tokenizers *tokenizers, const char *name, struct tokenizer **ret_tokenizer, struct why *why);
