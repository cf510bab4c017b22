# Everything there is to do with this project, one word each. `make help` lists them.

PREFIX ?= /usr/local
DESTDIR ?=
BENCH_DATA ?= /dev/shm/backup-tool-bench

BINARY := .build/release/backup-tool
SOURCES := Package.swift $(shell find Sources -type f)

# One set of flags for `check` and `test`: with two, each would build everything again.
TEST_FLAGS := -Xswiftc -warnings-as-errors

BIN_DIR := $(DESTDIR)$(PREFIX)/bin
SHARE_DIR := $(DESTDIR)$(PREFIX)/share
MAN_DIR := $(SHARE_DIR)/man/man1
BASH_FILE := $(SHARE_DIR)/bash-completion/completions/backup-tool
ZSH_FILE := $(SHARE_DIR)/zsh/site-functions/_backup-tool
FISH_FILE := $(SHARE_DIR)/fish/vendor_completions.d/backup-tool.fish

.PHONY: help demo test build check bench torture mutants fuzz install uninstall clean lint deb dist setup-build setup-test setup-bench setup-package

help: ## list what can be made
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 12

demo: build ## see the whole round trip with the library in samples/
	@BACKUP_TOOL="$(BINARY)" scripts/demo.sh

test: setup-test ## run every quick test
	swift test --disable-xctest $(TEST_FLAGS)

build: setup-build $(BINARY) ## build for release: .build/release/backup-tool

# A rebuild that changes nothing leaves the old time on the binary, hence the touch.
$(BINARY): $(SOURCES)
	swift build -c release --static-swift-stdlib --product backup-tool
	@touch $@

lint: setup-build ## check the style of the sources, and that the planted bugs fit them
	swift format lint --strict -r Sources Tests Package.swift
	@scripts/mutants.py --check

check: setup-test lint ## what a change must pass: style, warnings, layers, tests
	swift build --build-tests $(TEST_FLAGS)
	swift test --disable-xctest $(TEST_FLAGS)

torture: setup-test ## run the random tests for long, and print a table of their rounds
	@scripts/torture.py $(TEST_FLAGS)
	@scripts/fuzz.sh 60

fuzz: setup-test ## fuzz every reader of outside bytes, a minute each
	@scripts/fuzz.sh 60

mutants: setup-test ## plant bugs one at a time and count those that the tests see (MUTANTS=1-20: only these)
	@scripts/mutants.py $(MUTANTS_FLAGS) $(MUTANTS)

bench: setup-bench build ## measure against the peers (downloads 1.2 GB once)
	swift build -c release --static-swift-stdlib --product bibtex-parse
	@scripts/bench-data.sh "$(BENCH_DATA)"
	@.build/bench-venv/bin/python Benchmarks/bench.py --tool "$(BINARY)" --data "$(BENCH_DATA)" $(BENCH_FLAGS)

# As root there may be no `swift` on the PATH: `make build && sudo make install` does not need it.
install: $(BINARY) ## install below PREFIX (/usr/local): binary, manual pages, completions
	install -d "$(BIN_DIR)" "$(MAN_DIR)" "$(dir $(BASH_FILE))" "$(dir $(ZSH_FILE))" "$(dir $(FISH_FILE))"
	install -m 755 "$(BINARY)" "$(BIN_DIR)/backup-tool"
	"$(BINARY)" man --all "$(MAN_DIR)"
	"$(BINARY)" completions bash > "$(BASH_FILE)"
	"$(BINARY)" completions zsh > "$(ZSH_FILE)"
	"$(BINARY)" completions fish > "$(FISH_FILE)"

uninstall: ## remove what install put there
	rm -f "$(BIN_DIR)/backup-tool" "$(MAN_DIR)"/backup-tool.1 "$(MAN_DIR)"/backup-tool-*.1
	rm -f "$(BASH_FILE)" "$(ZSH_FILE)" "$(FISH_FILE)"

deb: setup-package build ## make a Debian package, check it, and try it in a clean root (as root)
	@file=$$(scripts/package.sh deb) && lintian --fail-on error "$$file" && scripts/try-package.sh "$$file" && echo "$$file"

dist: setup-package build ## make a tarball with an install.sh
	@scripts/package.sh dist

clean: ## remove what was built
	rm -rf .build Benchmarks/results

setup-build setup-test setup-bench setup-package: setup-%:
	@scripts/setup.sh $*
