# make deb: Debian packages out of this tree. The packaging lies in packaging/debian/; what is built is what `make` builds.

DEB := build/deb

deb: ## Debian packages of daemon, staging, library and Python client in build/deb/
	@$(DEPS) build deb
	$(SUBMAKE) VARIANT=release all
	@rm -rf $(DEB) && mkdir -p $(DEB)
	@$(MAKE) --no-print-directory -s dist >/dev/null
	@tar -xzf build/$(DIST_NAME).tar.gz -C $(DEB)
	@cp -a packaging/debian $(DEB)/$(DIST_NAME)/debian
	@sed -i '1s/($(VERSION))/($(FULL_VERSION))/' $(DEB)/$(DIST_NAME)/debian/changelog
	@ln -s ../.. $(DEB)/$(DIST_NAME)/build # the objects that are there already; without them all is compiled
	@cd $(DEB)/$(DIST_NAME) && DEB_BUILD_OPTIONS="noautodbgsym parallel=$(JOBS)" MAKEFLAGS= \
		dpkg-buildpackage --build=binary --no-sign --no-pre-clean >../log 2>&1 || { tail -n 30 ../log >&2; exit 1; }
	@rm -rf $(DEB)/$(DIST_NAME)
	@ls $(DEB)/*.deb

.PHONY: deb
