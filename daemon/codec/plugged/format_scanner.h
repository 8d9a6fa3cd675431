/* codec/plugged/format_scanner.h: a format of a plug-in, as the floor of data wants it (data/scanner.h). */
#pragma once

#include "daemon/data/scanner.h"
#include "proto/base/why.h"

struct plugins;

/* Of "plugin(blocks.album, ARGUMENT)". -EINVAL: the column and what was expected, or there is no such plug-in or
 * format. -ENOMEM. `plugins` NULL: there are none. */
int format_scanner_new(const char *text, struct plugins *plugins, struct scanner **ret_scanner, struct why *why);

/* Takes NULL. */
void format_scanner_free(struct scanner *scanner);
