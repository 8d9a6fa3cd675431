/* staging/prepare/prepare_litdata.h: the program that `prepare = "convert"` runs for chunks of LitData whose items are
 * compressed, in batches or each by itself. */
#pragma once

/* Python, for `python3 -c`, without packages, but with the program zstd: reads a chunk from standard input, which must
 * be a file and no pipe, and writes the chunk with its items decompressed to standard output; any other chunk as it is.
 * Takes a few megabytes whatever the chunk's size, and what zstd needs. Every number of the tables is checked, and
 * every length against what the frame of zstd says of itself, before anything of it is decompressed; zstd compares that
 * with what it unpacks. */
extern const char CHUNK_TO_PLAIN[];
