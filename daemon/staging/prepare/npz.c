#include "daemon/staging/prepare/npz.h"

/* The time in the archive is always the same, so that equal arrays become equal files. */
const char NPZ_TO_STORED[] =
        "import shutil, sys, zipfile, zlib\n"
        "try:\n"
        "    with zipfile.ZipFile(sys.stdin.buffer) as packed, zipfile.ZipFile(sys.stdout.buffer, 'w') as stored:\n"
        "        for name in packed.namelist():\n"
        "            with packed.open(name) as array, stored.open(zipfile.ZipInfo(name), 'w', force_zip64=True) as copy:\n"
        "                shutil.copyfileobj(array, copy, 1 << 20)\n"
        "except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:\n"
        "    sys.exit(f'not converted: {error}')\n";
