/* data/formats/webdataset/links.h: where the bytes of an archive's links are.
 *
 * Of a file with several names tar writes the bytes once, under the first name that it met; the others are links to
 * that name. Which one was met first depends on the sequence of a folder, so a link may lead to a later member as well,
 * or to another link. A symbolic link leads to a name as seen from its own folder. */
#pragma once

#include "daemon/data/formats/webdataset/tar.h"

struct tar_links;

/* Reads all headers of the archive once more, up to its end or to where it is damaged, and keeps what links can lead
 * to. Arguments as of tar_open(). Returns 0; -ENOMEM, -ECANCELED or an errno of reading, with `why`. */
int tar_links_read(int fd, uint64_t n_bytes, const atomic_bool *cancel, struct tar_links **ret_links, struct why *why);

/* Takes NULL. */
void tar_links_free(struct tar_links *links);

/* Positive outcomes of tar_links_find(), of symbolic links alone and of further names of one. */
#define TAR_LINK_IS_FOLDER     1
#define TAR_LINK_LEADS_NOWHERE 2
#define TAR_LINK_LEADS_OUT     3 /* of the archive: nothing that may come yet is what it leads to */

/* Where the bytes of a link are. If the archive has the target more than once, it is the one that the link leads to
 * where the archive is unpacked: of a symbolic link the last one; of a hard link the last one before the link, else the
 * first one after it. Folders of the target may be links, too. Returns 0 with offset and n_bytes set; a positive
 * outcome; -ENOENT and -ELOOP of a hard link whose file the archive lacks. */
int tar_links_find(const struct tar_links *links, const struct tar_member *link, struct tar_member *ret_member);

/* Did the archive end before it should? Then what was not found may come yet. */
bool tar_links_are_cut(const struct tar_links *links);
