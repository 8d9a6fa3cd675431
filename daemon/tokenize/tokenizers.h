/* tokenize/tokenizers.h: the tokenizers of a folder, by name. Each is read once, and shared by all who use it.
 *
 * A pipeline names a tokenizer, and this floor finds the file: NAME.json or NAME/tokenizer.json in the folder of the
 * configuration. A name never leads out of it, so that a client can have no other file read; links in the folder are
 * the administrator's. The last few stay in memory when nobody uses them; a file that has changed is read again, and
 * who uses the old one keeps it.
 *
 * A client chooses the file, which may take seconds and much memory. So it is read by a thread that works for its user
 * (base/work/errand.h), one file at a time for each, and the memory that this takes is reserved before. All functions
 * may be called from any thread. */
#pragma once

#include <stddef.h>

#include "daemon/base/budget.h"
#include "daemon/tokenize/at_hand.h"

struct tokenizers;

/* The tokenizers' memory is reserved in `budget`, which outlives them; NULL: nowhere. -ENOMEM. */
int tokenizers_new(const char *folder, struct budget *budget, struct tokenizers **ret_tokenizers);

/* Takes NULL. Who uses a tokenizer keeps it. */
void tokenizers_free(struct tokenizers *tokenizers);

/* Another folder, from the next tokenizers_read() on. -ENOMEM. */
int tokenizers_set_folder(struct tokenizers *tokenizers, const char *folder);

/* Is it a name: parts of letters, digits, "_", "-" and ".", joined by "/", none of which begins with "."? */
bool tokenizers_is_name(const char *name, size_t n);

/* A reference to the tokenizer, whose name tokenizers_is_name(). Blocks while the file is read, and while another one
 * is read for `whom`; within an errand it ends early with -ECANCELED. Memory for the reading is reserved in `budget`;
 * NULL: nowhere. -ENOENT, -EINVAL, -EBADMSG, -EFBIG, -ENOMEM or what reading gave; `why` names the file. */
int tokenizers_read(struct tokenizers *tokenizers, const char *name, const void *whom, struct budget *budget,
                    struct tokenizer **ret_tokenizer, struct why *why);
