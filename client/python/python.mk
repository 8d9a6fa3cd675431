# What make install puts beside the system's other Python packages. The wheel is made in packaging/wheel/.

PYTHONDIR ?= $(PREFIX)/lib/python3/dist-packages
PYTHON_SOURCES := $(wildcard client/python/dlclient/*.py client/python/dlclient/*/*.py) client/python/dlclient/py.typed
PYTHON_FOLDERS := $(sort $(patsubst client/python/%/,%,$(dir $(PYTHON_SOURCES))))
