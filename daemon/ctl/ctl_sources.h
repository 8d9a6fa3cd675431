/* ctl/ctl_sources.h: the datasets that an attach names by their paths.
 *
 * The client says which file it sees at each path (device and inode). The daemon looks, too: if it sees another one,
 * both have different file systems before them (a container, another root), and what would be served is not what was
 * meant. */
#pragma once

#include "daemon/ctl/session.h"

/* Checks who asks, looks at the paths in the background (which takes as long as a dead mount hangs), and sees to it
 * that the catalog has an entry for each. Meanwhile the session reads no request. `done` is called on the main thread
 * with 0 and the text that names them all, as catalog_next_name() reads it; or with an errno and its sentence; or with
 * -ECANCELED: the client has left, and the session must not be used any more. `sources` must stay valid until then.
 * `in_blocks`: they are wanted in the order of blocks. Returns 0; or an errno with `why`: then `done` is not called. */
int sources_find(struct session *session, Dlp__Source *const *sources, size_t n_sources, bool in_blocks,
                 void (*done)(void *userdata, int result, const char *text, const struct why *why), void *userdata,
                 struct why *why);
