"""dlio_run.py ARGUMENTS: DLIO's own program. Its profiler imports TensorFlow, which a workload of torch never calls, so
an empty module stands in where that is not installed."""
import importlib.util
import sys
import types

if importlib.util.find_spec("tensorflow") is None:
    sys.modules["tensorflow"] = types.ModuleType("tensorflow")

from dlio_benchmark.main import main

main()
