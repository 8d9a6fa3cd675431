/* base/patterns/glob_match.h: names and paths compared with a pattern of *, ? and **, as shells do it.
 *
 * * and ? stand for anything within a name, ** as a whole name for any number of folders. Names that begin with a dot
 * match only where the pattern itself begins with one. */
#pragma once

#include <stdbool.h>

#define GLOB_CHARACTERS "*?"

/* One name, without a slash on either side. `with_hidden`: a leading dot is nothing special. */
bool glob_match_name(const char *pattern, const char *name, bool with_hidden);

/* A whole path. A name above NAME_MAX bytes matches nothing. Takes as many steps as both have names, multiplied. */
bool glob_match_path(const char *pattern, const char *path);
