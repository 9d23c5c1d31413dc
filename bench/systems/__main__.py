"""usage: python -m bench.systems NAME prepare | NAME work PROCESSES | NAME send CHAINS LENGTH NUMBER"""

import sys
from importlib import import_module

name, what, *numbers = sys.argv[1:]
getattr(import_module(f"bench.systems.{name}"), what)(*map(int, numbers))
