# The Python client: the wheel, and what make install puts beside the system's other packages.

PYTHONDIR ?= $(PREFIX)/lib/python3/dist-packages
PYTHON_SOURCES := $(wildcard client/python/dlclient/*.py) client/python/dlclient/py.typed

wheel: build/wheel/$(SONAME) ## the Python client with its library as build/dlclient-*.whl
	@rm -f build/dlclient-*.whl
	@$(PYTHON) client/python/build_wheel.py $< build

# The wheel's library has to run where no protobuf-c is installed, so that is linked in; Debian's archive is made of
# position-independent code. It is the release build's, whatever VARIANT says.
RELEASE_OBJECTS = $(patsubst $(B)/%,build/release/%,$(OBJ_client) $(OBJ_proto))

build/wheel/$(SONAME): $(RELEASE_OBJECTS) client/lib/libdlclient.map
	@mkdir -p $(@D)
	$(CC) -pthread $(CFLAGS_release) $(LDFLAGS) -Wl,--as-needed -shared -s -Wl,-soname,$(SONAME) \
		-Wl,--version-script=client/lib/libdlclient.map -Wl,-z,defs -o $@ $(RELEASE_OBJECTS) -l:libprotobuf-c.a -lm

ifneq ($(VARIANT),release)
$(RELEASE_OBJECTS):
	+@$(MAKE) --no-print-directory VARIANT=release lib
endif

.PHONY: wheel
