/* dlctl/once/once_key.h: what a command depends on, as 64 hexadecimal digits. */
#pragma once

#include "client/dlctl/dlctl_options.h"

#define ONCE_KEY_SIZE 65u /* with NUL */

/* SHA-256 over the command line, the user's own key (may be NULL) and the inputs' names and contents. Reads them whole.
 * Returns 0, or the exit code after it said what cannot be read. */
int once_key(char *const *arguments, const char *key, const struct option_list *inputs, char ret_key[ONCE_KEY_SIZE]);
