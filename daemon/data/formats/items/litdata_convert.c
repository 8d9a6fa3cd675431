#include "daemon/data/formats/items/litdata_convert.h"

/* Python, for `python3 -c`, without packages, but with the program zstd: reads a chunk from standard input, which must
 * be a file and no pipe, and writes the chunk with its items decompressed to standard output; any other chunk as it is.
 * Takes a few megabytes whatever the chunk's size, and what zstd needs. Every number of the tables is checked, and
 * every length against what the frame of zstd says of itself, before anything of it is decompressed; zstd compares that
 * with what it unpacks.
 *
 * What is compressed in batches (LitData 0.2.76):
 *
 *      "LDFZ01", two zeroes, version (2 bytes), flags (2)
 *      number of items N, items in a batch, number of batches (4 bytes each)
 *      begin of each item and end of the last one, from the begin of the first one, decompressed (4 bytes each)
 *      of each batch: its first item, number of items (4 each), begin in the file (8), bytes packed and plain (4 each)
 *      the batches, each a frame of zstd
 *
 * Of items that are compressed one by one, the chunk looks as others do; a chunk may also be one frame as a whole,
 * which no plain one begins like: it would have four thousand million items. Either way the frames are the rest of the
 * file, one after the other, and so is what zstd makes of them. */
static const char CHUNK_TO_PLAIN[] =
        "import os, shutil, struct, subprocess, sys\n"
        "\n"
        "BATCHES, FRAME = b'LDFZ01\\0\\0', b'\\x28\\xb5\\x2f\\xfd'\n"
        "N_FILE, out = os.fstat(0).st_size, sys.stdout.buffer\n"
        "\n"
        "def refuse(words):\n"
        "    sys.exit(f'not converted: {words}')\n"
        "\n"
        "def read(form, at):\n"
        "    n = struct.calcsize(form)\n"
        "    found = os.pread(0, n, at)\n"
        "    return struct.unpack(form, found) if len(found) == n else refuse(f'it is cut at byte {N_FILE}')\n"
        "\n"
        "def unpacked_size(name, begin, end):\n"
        "    head = os.pread(0, min(18, max(0, end - begin)), begin)\n"
        "    if end > N_FILE or len(head) < 6 or head[:4] != FRAME:\n"
        "        refuse(f'{name} is not a frame of zstd within the file')\n"
        "    kind = head[4]\n"
        "    n = (kind >> 5 & 1, 2, 4, 8)[kind >> 6]\n"
        "    if n == 0:\n"
        "        refuse(f'{name} does not say how long it is')\n"
        "    at = (5 if kind >> 5 & 1 else 6) + (0, 1, 2, 4)[kind & 3]\n"
        "    size = int.from_bytes(head[at:at + n], 'little') + (256 if n == 2 else 0)\n"
        "    at, is_last = begin + at + n, False\n"
        "    while not is_last and at + 3 <= end:\n"
        "        low, high = read('<HB', at)\n"
        "        is_last = low & 1\n"
        "        at += 3 + (1 if low >> 1 & 3 == 1 else (high << 16 | low) >> 3)\n"
        "    if not is_last or at + 4 * (kind >> 2 & 1) != end:\n"
        "        refuse(f'{name} does not end where the table says')\n"
        "    return size\n"
        "\n"
        "def write_table(n, ends):\n"
        "    begin, last = 4 * (n + 2), 0\n"
        "    out.write(struct.pack('<I', n))\n"
        "    for i, end in enumerate(ends):\n"
        "        if end < last or i == 0 and end > 0:\n"
        "            refuse(f'the table does not say where item {max(0, i - 1)} lies')\n"
        "        if begin + end > 0xffffffff:\n"
        "            refuse('decompressed it is longer than 4 GiB, which no chunk can be')\n"
        "        out.write(struct.pack('<I', begin + end))\n"
        "        last = end\n"
        "    out.flush()\n"
        "\n"
        "def decompress(begin):\n"
        "    os.lseek(0, begin, os.SEEK_SET)\n"
        "    try:\n"
        "        done = subprocess.run(['zstd', '-dcq'], stderr=subprocess.PIPE)\n"
        "    except FileNotFoundError:\n"
        "        refuse('the program zstd is not installed')\n"
        "    if done.returncode != 0:\n"
        "        refuse(f'zstd ended with status {done.returncode}: ' + done.stderr.decode(errors='replace').strip()[-200:])\n"
        "\n"
        "def check_batches(n, n_batches, table, begin):\n"
        "    item, at = 0, begin\n"
        "    for i in range(n_batches):\n"
        "        first, n_items, place, n_packed, n_bytes = read('<IIQII', table + 24 * i)\n"
        "        if first != item or n_items == 0 or n_items > n - item or place != at:\n"
        "            refuse(f'batch {i} does not follow the one before it')\n"
        "        item, at = item + n_items, at + n_packed\n"
        "        if read('<I', 24 + 4 * item)[0] - read('<I', 24 + 4 * first)[0] != n_bytes:\n"
        "            refuse(f'batch {i} is said to have {n_bytes} bytes, and its items have others')\n"
        "        size = unpacked_size(f'batch {i}', place, at)\n"
        "        if size != n_bytes:\n"
        "            refuse(f'batch {i} has {size} bytes, and is said to have {n_bytes}')\n"
        "    if item != n or at != N_FILE:\n"
        "        refuse(f'its batches have {item} of {n} items and end at byte {at} of {N_FILE}')\n"
        "\n"
        "def unpack_batches():\n"
        "    version, flags, n, _, n_batches = read('<HHIII', 8)\n"
        "    if version != 1 or flags != 0:\n"
        "        refuse(f'its items are compressed as version {version} with flags {flags}, which is not known')\n"
        "    table = 24 + 4 * (n + 1)\n"
        "    begin = table + 24 * n_batches\n"
        "    check_batches(n, n_batches, table, begin)\n"
        "    write_table(n, (read('<I', 24 + 4 * i)[0] for i in range(n + 1)))\n"
        "    decompress(begin)\n"
        "\n"
        "def item_ends(n):\n"
        "    begin, total = 4 * (n + 2), 0\n"
        "    yield 0\n"
        "    for i in range(n):\n"
        "        end = read('<I', 8 + 4 * i)[0]\n"
        "        total += unpacked_size(f'item {i}', begin, end)\n"
        "        begin = end\n"
        "        yield total\n"
        "    if begin != N_FILE:\n"
        "        refuse(f'its last item ends at byte {begin} of {N_FILE}')\n"
        "\n"
        "def unpack_items(n):\n"
        "    write_table(n, item_ends(n))\n"
        "    decompress(4 * (n + 2))\n"
        "\n"
        "def has_packed_items(n, begin, end):\n"
        "    return n > 0 and begin == 4 * (n + 2) and end - begin < 0xfd2fb528 and os.pread(0, 4, begin) == FRAME\n"
        "\n"
        "try:\n"
        "    if os.pread(0, 8, 0) == BATCHES:\n"
        "        unpack_batches()\n"
        "    elif N_FILE >= 12 and has_packed_items(*read('<III', 0)):\n"
        "        unpack_items(read('<I', 0)[0])\n"
        "    else:\n"
        "        shutil.copyfileobj(sys.stdin.buffer, out, 1 << 20)\n"
        "except OSError as error:\n"
        "    refuse(error)\n";

/* zstd with this effort; without one the name has none. */
#define EFFORT(n)                                                                                                      \
        { ".zstd:" #n ".bin", { "zstd", "-dcq" }, ".bin" }

const struct format_conversion LITDATA_CONVERSIONS[] = {
        { ".zstd.bin", { "zstd", "-dcq" }, ".bin" },
        EFFORT(1),
        EFFORT(2),
        EFFORT(3),
        EFFORT(4),
        EFFORT(5),
        EFFORT(6),
        EFFORT(7),
        EFFORT(8),
        EFFORT(9),
        EFFORT(10),
        EFFORT(11),
        EFFORT(12),
        EFFORT(13),
        EFFORT(14),
        EFFORT(15),
        EFFORT(16),
        EFFORT(17),
        EFFORT(18),
        EFFORT(19),
        EFFORT(20),
        EFFORT(21),
        EFFORT(22),
        /* Compressed within, so that the name does not say it. The files of tokens that Megatron has have an .idx each.
         */
        { ".bin",
          { NULL, "-c", CHUNK_TO_PLAIN },
          ".bin",
          .begin = "chunk-",
          .beside = "index.json",
          .without = ".idx" },
        { 0 },
};
