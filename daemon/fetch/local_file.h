/* fetch/local_file.h: files of this machine that a URL names, opened so that a link that is put into their
 * place while they are looked at leads nowhere else. */
#pragma once

#include <limits.h>

/* Opens what file:///path names for reading. `below`: a folder without links, which ends with '/'; the file must lie
 * below it, whatever links lead there; "": it may lie anywhere. Blocks for the file system. Returns 0; -EXDEV if it
 * lies elsewhere; -EISDIR; -EINVAL if it is not a regular file; or what the system says. The descriptor is the
 * caller's. */
int local_file_open(const char *url, const char *below, int *ret_fd);

/* Where files may lie that an origin leads to: below `folder`, "" for anywhere. A folder leads to what is in it, and so
 * does a document (a manifest, a list, an archive) that others could write; one that only this user or root can write
 * leads anywhere. `url`: of the origin; not of a file: nowhere. Blocks for the file system. */
void local_file_reach(const char *url, char folder[PATH_MAX]);
