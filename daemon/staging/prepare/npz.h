/* staging/prepare/npz.h: the program that `prepare = "convert"` runs for archives of arrays. */
#pragma once

/* Python, for `python3 -c`, without packages: reads an .npz archive, compressed or not, from standard input, which must
 * be a file and no pipe, and writes the same arrays to standard output as an archive that is not compressed, as
 * numpy.savez() does. Takes a megabyte of memory whatever the archive's size; checksums are compared. */
extern const char NPZ_TO_STORED[];
