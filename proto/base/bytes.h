/* proto/base/bytes.h: numbers of bytes as people write them; amounts.h has them as people read them. */
#pragma once

#include <stdint.h>

#include "proto/base/shown/amounts.h"
#include "proto/base/symbol.h"

/* Reads digits, followed by nothing or by one of KiB, MiB, GiB, TiB: "8GiB", "512MiB", "4096". No blanks, no sign, no
 * fraction, the unit spelled exactly so. Returns 0; -EINVAL if the text is anything else; -ERANGE above 2^64 - 1. */
int parse_bytes(const char *text, uint64_t *ret_bytes) DLP_SYMBOL(parse_bytes);
