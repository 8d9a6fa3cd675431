/* fetch/late/archive_functions.h: the functions of libarchive that we call. A further one is a row here and a line in archive_late.h. */
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include "proto/late/late.h"

#define ARCHIVE_FUNCTIONS(ROW)                                                                                         \
        ROW(archive_entry_filetype)                                                                                    \
        ROW(archive_entry_hardlink)                                                                                    \
        ROW(archive_entry_mode)                                                                                        \
        ROW(archive_entry_pathname)                                                                                    \
        ROW(archive_entry_size)                                                                                        \
        ROW(archive_entry_size_is_set)                                                                                 \
        ROW(archive_entry_symlink)                                                                                     \
        ROW(archive_error_string)                                                                                      \
        ROW(archive_filter_bytes)                                                                                      \
        ROW(archive_filter_count)                                                                                      \
        ROW(archive_format)                                                                                            \
        ROW(archive_read_append_filter)                                                                                \
        ROW(archive_read_data_block)                                                                                   \
        ROW(archive_read_free)                                                                                         \
        ROW(archive_read_new)                                                                                          \
        ROW(archive_read_next_header)                                                                                  \
        ROW(archive_read_open)                                                                                         \
        ROW(archive_read_open2)                                                                                        \
        ROW(archive_read_set_format_option)                                                                            \
        ROW(archive_read_support_filter_bzip2)                                                                         \
        ROW(archive_read_support_filter_lz4)                                                                           \
        ROW(archive_read_support_filter_xz)                                                                            \
        ROW(archive_read_support_filter_zstd)                                                                          \
        ROW(archive_read_support_format_empty)                                                                         \
        ROW(archive_read_support_format_raw)                                                                           \
        ROW(archive_read_support_format_tar)                                                                           \
        ROW(archive_read_support_format_zip_streamable)                                                                \
        ROW(archive_set_error)

struct archive_late {
        ARCHIVE_FUNCTIONS(LATE_MEMBER)
};

/* Before anything else of libarchive is called. Returns 0; -ELIBACC with a sentence (`why` may be NULL). Any thread. */
int archive_load(struct why *why);

/* The functions, once the library is loaded. */
const struct archive_late *archive_late(void);
