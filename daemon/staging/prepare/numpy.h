/* staging/prepare/numpy.h: the programs that `prepare = "convert"` runs for arrays and for archives of them. */
#pragma once

/* Python, for `python3 -c`, without packages: reads an .npz archive, compressed or not, from standard input, which must
 * be a file and no pipe, and writes the same arrays to standard output as an archive that is not compressed, as
 * numpy.savez() does. Takes a megabyte of memory whatever the archive's size; checksums are compared. */
extern const char NPZ_TO_STORED[];

/* Python with numpy: reads the .npy file that the environment variable DATALOADERD_FILE names, and writes the same
 * array in C order to standard output. Takes some 16 MB, or one row. */
extern const char NPY_TO_ROWS[];
