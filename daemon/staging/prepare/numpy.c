#include "daemon/staging/prepare/numpy.h"

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

/* Row after row, so that an array larger than the memory can be turned as well. Objects stay as they are: they are not
 * served, and the arrays beside them are. */
const char NPY_TO_ROWS[] =
        "import os, shutil, sys\n"
        "BLOCK_BYTES = 16 << 20\n"
        "try:\n"
        "    import numpy\n"
        "except ImportError as error:\n"
        "    sys.exit(f'putting an array into C order needs numpy ({error}); install it with \"{sys.executable} -m pip '\n"
        "             'install numpy\", or set DATALOADERD_PYTHON to a Python that has it')\n"
        "try:\n"
        "    with open(os.environ['DATALOADERD_FILE'], 'rb') as file:\n"
        "        version = numpy.lib.format.read_magic(file)\n"
        "        read = getattr(numpy.lib.format, 'read_array_header_%d_0' % min(version[0], 2))\n"
        "        if read(file)[2].hasobject:\n"
        "            file.seek(0)\n"
        "            shutil.copyfileobj(file, sys.stdout.buffer, BLOCK_BYTES)\n"
        "            sys.exit(0)\n"
        "    array = numpy.load(os.environ['DATALOADERD_FILE'], mmap_mode='r')\n"
        "    header = numpy.lib.format.header_data_from_array_1_0(array)\n"
        "    header['fortran_order'] = False\n"
        "    numpy.lib.format.write_array_header_2_0(sys.stdout.buffer, header)\n"
        "    n_rows = max(1, BLOCK_BYTES * len(array) // max(1, array.nbytes)) if array.ndim else 1\n"
        "    for begin in range(0, len(array) if array.ndim else 1, n_rows):\n"
        "        rows = array[begin:begin + n_rows] if array.ndim else array\n"
        "        sys.stdout.buffer.write(numpy.ascontiguousarray(rows).tobytes())\n"
        "except (ValueError, EOFError, OSError) as error:\n"
        "    sys.exit(f'not converted: {error}')\n";
