# make install, uninstall, dist: everything to its Debian place. DESTDIR, PREFIX, SYSCONFDIR, UNITDIR and LIBDIR count.
#
# One list says what goes where, so that uninstall removes exactly what install brought: mode, source, target.

SBINDIR ?= $(PREFIX)/sbin
BINDIR ?= $(PREFIX)/bin
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
COMPLETIONDIR ?= $(PREFIX)/share
DOCDIR ?= $(PREFIX)/share/doc/dataloaderd
DATADIR ?= $(PREFIX)/share/dataloaderd
SYSUSERSDIR ?= $(patsubst %/systemd/system,%/sysusers.d,$(patsubst /lib/%,$(PREFIX)/lib/%,$(UNITDIR)))
TMPFILESDIR ?= $(patsubst %/sysusers.d,%/tmpfiles.d,$(SYSUSERSDIR))

RELEASE := build/release
MAN_PAGES := $(wildcard client/man/*.[1-8])
DOCUMENTS := $(wildcard README.md ARCHITECTURE.md LICENSE)
MONITORING := $(wildcard docs/metrics/*)
EXAMPLE_SOURCES := $(wildcard client/examples/*.c client/examples/*.cpp docs/plugins/*.c)

# With paths to be written into them.
UNITS := dataloaderd.service dataloaderd-stage@.service
STAGER := $(if $(wildcard daemon/staging/run/stage_main.c),$(RELEASE)/dataloaderd-stage)

COMPLETIONS := bash zsh fish

# mode:source:target. What has paths written into it, and the configuration, are handled by themselves below.
INSTALLED = \
	0755:$(RELEASE)/dataloaderd:$(SBINDIR)/dataloaderd \
	0755:$(RELEASE)/dlctl:$(BINDIR)/dlctl \
	$(foreach program,$(STAGER),0755:$(program):$(SBINDIR)/dataloaderd-stage) \
	0644:$(RELEASE)/$(SONAME):$(LIBDIR)/$(SONAME) \
	0644:$(RELEASE)/$(SONAME_cuda):$(LIBDIR)/$(SONAME_cuda) \
	0644:$(RELEASE)/libdlclient.a:$(LIBDIR)/libdlclient.a \
	0644:client/include/dlclient.h:$(INCLUDEDIR)/dlclient.h \
	0644:client/include/dlclient-cuda.h:$(INCLUDEDIR)/dlclient-cuda.h \
	0644:daemon/plugin/include/dlplugin.h:$(INCLUDEDIR)/dlplugin.h \
	0644:systemd/dataloaderd.socket:$(UNITDIR)/dataloaderd.socket \
	0644:systemd/dataloaderd.sysusers:$(SYSUSERSDIR)/dataloaderd.conf \
	0644:systemd/dataloaderd.tmpfiles:$(TMPFILESDIR)/dataloaderd.conf \
	0644:$(RELEASE)/completion/bash:$(COMPLETIONDIR)/bash-completion/completions/dlctl \
	0644:$(RELEASE)/completion/zsh:$(COMPLETIONDIR)/zsh/vendor-completions/_dlctl \
	0644:$(RELEASE)/completion/fish:$(COMPLETIONDIR)/fish/vendor_completions.d/dlctl.fish \
	$(foreach page,$(MAN_PAGES),0644:$(page):$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(notdir $(page))) \
	$(foreach source,$(PYTHON_SOURCES),0644:$(source):$(PYTHONDIR)/$(source:client/python/%=%)) \
	$(foreach document,$(DOCUMENTS),0644:$(document):$(DOCDIR)/$(document)) \
	0644:docs/metrics.md:$(DOCDIR)/metrics.md \
	$(foreach file,$(MONITORING),0644:$(file):$(DATADIR)/$(notdir $(file))) \
	$(foreach example,$(EXAMPLE_SOURCES),0644:$(example):$(DOCDIR)/examples/$(notdir $(example)))

part = $(word $(2),$(subst :, ,$(1)))
install_one = install -D -m $(call part,$(1),1) $(call part,$(1),2) "$(DESTDIR)$(call part,$(1),3)"
CONFIG_TARGET = $(DESTDIR)$(SYSCONFDIR)/dataloaderd/dataloaderd.conf
UNIT_TARGETS = $(foreach unit,$(UNITS),$(DESTDIR)$(UNITDIR)/$(unit))
PC_SOURCES := client/lib/dlclient.pc client/cuda/dlclient-cuda.pc daemon/plugin/include/dlplugin.pc
PC_FOLDER = $(DESTDIR)$(LIBDIR)/pkgconfig


install: all $(STAGER) $(COMPLETIONS:%=$(RELEASE)/completion/%) ## put everything in its place (DESTDIR, PREFIX, SYSCONFDIR, UNITDIR, LIBDIR)
	@$(foreach entry,$(INSTALLED),$(call install_one,$(entry)) && ) true
	@sed -i 's|^__version__ = .*|__version__ = "$(FULL_VERSION)"|' "$(DESTDIR)$(PYTHONDIR)/dlclient/_version.py"
	@ln -sf $(SONAME) "$(DESTDIR)$(LIBDIR)/libdlclient.so"
	@ln -sf $(SONAME_cuda) "$(DESTDIR)$(LIBDIR)/libdlclient-cuda.so"
	@mkdir -p "$(DESTDIR)$(UNITDIR)" "$(PC_FOLDER)"
	@for source in $(PC_SOURCES); do \
		target="$(PC_FOLDER)/$${source##*/}"; \
		sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(FULL_VERSION)|' "$$source.in" >"$$target" && \
		chmod 0644 "$$target" || exit 1; \
	done
	@for unit in $(UNITS); do \
		sed -e 's|/usr/sbin/dataloaderd|$(SBINDIR)/dataloaderd|' -e 's|/etc/dataloaderd/|$(SYSCONFDIR)/dataloaderd/|' \
			"systemd/$$unit" >"$(DESTDIR)$(UNITDIR)/$$unit" && chmod 0644 "$(DESTDIR)$(UNITDIR)/$$unit" || exit 1; \
	done
	@if [ -e "$(CONFIG_TARGET)" ]; then \
		install -m 0644 config/dataloaderd.conf "$(CONFIG_TARGET).new"; \
		echo "kept $(CONFIG_TARGET); the new one lies beside it as .new"; \
	else \
		install -D -m 0644 config/dataloaderd.conf "$(CONFIG_TARGET)"; \
	fi
	@if [ -z "$(DESTDIR)" ]; then \
		ldconfig; \
		echo "installed; next: systemd-sysusers && systemd-tmpfiles --create && systemctl daemon-reload &&" \
			"systemctl enable --now dataloaderd"; \
	fi

uninstall: ## remove what install brought; a configuration that was edited stays
	@rm -f $(foreach entry,$(INSTALLED),"$(DESTDIR)$(call part,$(entry),3)") \
		"$(DESTDIR)$(LIBDIR)/libdlclient.so" "$(DESTDIR)$(LIBDIR)/libdlclient-cuda.so" \
		$(foreach target,$(UNIT_TARGETS),"$(target)") $(foreach source,$(PC_SOURCES),"$(PC_FOLDER)/$(notdir $(source))") \
		"$(CONFIG_TARGET).new"
	@if cmp -s config/dataloaderd.conf "$(CONFIG_TARGET)"; then rm -f "$(CONFIG_TARGET)"; fi
	@rm -rf $(foreach folder,$(PYTHON_FOLDERS),"$(DESTDIR)$(PYTHONDIR)/$(folder)/__pycache__")
	@rmdir --ignore-fail-on-non-empty $(foreach folder,$(filter-out dlclient,$(PYTHON_FOLDERS)) dlclient,"$(DESTDIR)$(PYTHONDIR)/$(folder)") "$(DESTDIR)$(DOCDIR)/examples" "$(DESTDIR)$(DOCDIR)" \
		"$(DESTDIR)$(DATADIR)" \
		"$(DESTDIR)$(SYSCONFDIR)/dataloaderd" 2>/dev/null || true
	@if [ -z "$(DESTDIR)" ]; then ldconfig; fi

DIST_NAME := dataloaderd-$(FULL_VERSION)

dist: ## the sources as build/dataloaderd-VERSION.tar.gz: what git knows, else all but build/
	@mkdir -p build
	@echo "$(COMMIT)" >build/commit
	@if git ls-files --error-unmatch Makefile >/dev/null 2>&1; then git ls-files -z; printf 'build/commit\0'; \
		else find . \( -path ./.git -o -path ./build -o -name __pycache__ \) -prune -o -type f -printf '%P\0'; fi | \
		LC_ALL=C sort -z | tar --null -T - --owner=0 --group=0 --numeric-owner --transform 's|^build/commit$$|packaging/commit|;s|^|$(DIST_NAME)/|' \
		-czf build/$(DIST_NAME).tar.gz
	@echo build/$(DIST_NAME).tar.gz

.PHONY: install uninstall dist
