"""python -m dlclient: which package, which library, which socket, and whether a daemon answers there."""
from __future__ import annotations

import os
import sys

from . import _library, _opening, _options
from ._errors import DatasetNotFound, Error
from ._version import __version__

SOCKET = "/run/dataloaderd/dataloaderd.sock"


def main() -> int:
    print(f"dlclient {__version__} ({os.path.dirname(os.path.abspath(__file__))})")
    try:
        library = _library.load()
    except Error as error:
        print(f"library: {error}")
        return 1
    print(f"library: libdlclient {library.version_text} ({library.path})")
    print(f"socket:  {os.environ.get('DATALOADERD_SOCKET') or SOCKET}")
    return ask(library)


def ask(library: _library.Library) -> int:
    """Asks for a dataset that no configuration names: if the refusal has the right words, a daemon answered."""
    wish = _options.Wish(dataset=".no-dataset", batch_size=1, pipeline=None, seed=0, draws=0, shuffle=False,
                         drop_last=False, dealing="strided", partition="pad", order="torch", shuffle_buffer=None,
                         rank=0, world_size=1, ranks=None, job="python -m dlclient", socket=None,
                         on_error="fail", max_errors=None, on_restart="raise", restart_timeout=0.0,
                         slots=None, open_timeout=0.0)
    try:
        _opening.open_rank(library, wish, 0, wish.job, 0, 0, None)
    except DatasetNotFound as error:
        print(f"daemon:  answers; {str(error).rpartition('; ')[2]}")  # the end lists the datasets
        return 0
    except Error as error:
        print(f"daemon:  {error}")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
