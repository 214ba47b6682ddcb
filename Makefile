SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# cargo runs in parallel itself, and its output should stay in order.
.NOTPARALLEL:

cache := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/skep
export PATH := $(cache)/tools/bin:$(PATH)

# In CI, an outdated Cargo.lock is an error.
locked := $(if $(CI),--locked)
built := $(or $(CARGO_TARGET_DIR),target)/debug
released := $(or $(CARGO_TARGET_DIR),target)/release
crds := charts/skep-crds/files
rbac := charts/skep/files/rbac
# The folder that the compatibility tests compare with. It is not part of this repository.
SKEP_COMPAT ?= $(wildcard ../shared/compat)

# Programs with the features that they have in the tests: cargo would build most crates once more otherwise. It looks at the features of
# tests if it builds one of them, which is why a small one is named.
as_tested := --workspace --test scripts $(locked)
# The program as users have it, without the features of tests, and the cases beside it. Tests build a program of the same name in the
# same folder, so it has a folder of its own.
plain := $(built)/plain

progress = @printf '==> %s\n'

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

FILE ?= examples/quickstart.yaml
.PHONY: run
run: ## Build skep, and run the servers of FILE=examples/quickstart.yaml on this machine until Ctrl-C
	@command -v cargo >/dev/null || { echo 'error: skep is built with Rust: install it from https://rustup.rs, and try again' >&2; exit 1; }
	$(progress) 'Building skep, which takes some minutes the first time'
	@cargo build -p skep $(locked)
	$(progress) 'Running $(FILE)'
	@exec $(built)/skep run -f '$(FILE)'

.PHONY: build
build: ## Build the release binary, target/release/skep
	$(progress) 'Building the release binary'
	cargo build --release -p skep $(locked)

# Relocations take a tenth of the space, in the file and in memory. This needs the libc of the image, 2.36, or a newer one.
packed := -C link-arg=-Wl,-z,pack-relative-relocs
# What `make profile` recorded: what runs often is optimized for speed, and placed together; the rest is optimized for size.
profile := $(abspath $(dir $(released))skep.profdata)
host = $(shell rustc -vV | awk '/^host:/ { print $$2 }')
profiled := -Cprofile-use=$(profile) -Clink-arg=-Wl,-z,keep-text-section-prefix
.PHONY: image
image: ## Build the image, target/images/skep.tar, without a container engine; faster after make profile
	$(progress) 'Building the binary of the image, which takes some ten minutes'
	RUSTFLAGS="$${RUSTFLAGS-} $(if $(wildcard $(profile)),$(profiled))" \
		cargo rustc --profile image --target $(host) -p skep --bin skep $(locked) -- $(packed)
	$(progress) 'Building the image'
	@hack/image skep $(dir $(released))$(host)/image/skep

.PHONY: profile
profile: programs ## Record what runs often under load, for make image: 45 minutes on two cores
	@hack/profile $(profile)

.PHONY: test
test: for-tests ## Run all tests, on a real control plane
	$(progress) 'Starting a control plane for all tests'
	@KUBEBUILDER_ASSETS=$$(hack/programs) $(built)/skep-testkit $(MAKE) --no-print-directory tests

# Prerequisites of `make test`, which nothing that runs beside the tests may have to wait for.
.PHONY: for-tests
for-tests: programs
	@hack/tools cargo-nextest >/dev/null
	@hack/redis >/dev/null
	@hack/packages --tinyproxy >/dev/null
	@hack/helm >/dev/null
	@hack/programs --dex >/dev/null
	$(progress) 'Building the tests'
	cargo nextest run --workspace --no-run $(locked)
	$(progress) 'Testing the examples in the documentation'
	cargo test --workspace --doc --quiet $(locked)

# A part of `make test`, which runs it with that control plane. Tests that need SKEP_COMPAT are ignored without it; the other
# ignored ones are processes that tests start.
.PHONY: tests
tests:
ifneq ($(SKEP_COMPAT),)
	$(progress) 'Running the tests and the compatibility tests'
	SKEP_COMPAT='$(abspath $(SKEP_COMPAT))' cargo nextest run --workspace $(locked) \
		--run-ignored all -E 'not test(/^(killed::backend_process|processes::start_a_process_and_hang)$$/)'
else
	$(progress) 'Running the tests, without the compatibility tests: SKEP_COMPAT is not set'
	cargo nextest run --workspace $(locked)
endif

SCREENSHOTS ?=
.PHONY: browser
browser: plain ## Test the pages of the console and of the authorization server in Chromium (SCREENSHOTS=FOLDER keeps pictures)
	$(progress) 'Testing the console in Chromium'
	@SKEP='$(abspath $(plain))/skep' crates/console/tests/browser/run $(SCREENSHOTS)
	$(progress) 'Testing the pages of the authorization server in Chromium'
	@SKEP='$(abspath $(plain))/skep' crates/authserver/tests/browser/run $(SCREENSHOTS)

.PHONY: plain
plain:
	$(progress) 'Building skep, without the features of tests'
	cargo build -p skep --bin skep $(locked)
	@mkdir -p $(plain)
	@ln -f $(built)/skep $(plain)/skep

CASE ?=
.PHONY: e2e
e2e: recording = $(if $(CASE),,$(SKEP_COMPAT))
e2e: for-node ## Run operator, proxies and servers on real nodes, as a user would (as root; CASE=part of a name)
	$(if $(recording),@hack/image recorded-proxyrunner $(plain)/skep >/dev/null)
	$(progress) 'Running the cases'
	@$(node) $(or $(CASE),--nodes 2 $(if $(recording),--recording $(abspath $(recording))))

.PHONY: node
node: for-node ## Start a node with the operator in it, and a shell with kubectl, helm and skep beside it (as root)
	$(progress) 'Starting the node, and installing the charts'
	@$(node) --shell

node = $(plain)/skep-e2e --programs "$$(hack/programs --all)" --node-programs "$$(hack/programs --node)" \
	--packages "$$(hack/packages)" --podman "$$(hack/packages --podman)" --chromium "$$(hack/packages --chromium)" \
	--sdk "$$(hack/npm sdk)" --browser "$$(hack/npm browser)" --helm "$$(hack/helm)" --redis "$$(hack/redis)" \
	--images $(abspath $(built)/../images) --logs $(abspath $(built)/../e2e) \
	$(if $(SCREENSHOTS),--screenshots $(abspath $(SCREENSHOTS))) $(if $(SERVERS),--servers '$(SERVERS)')

.PHONY: migration
migration: for-node ## Migrate from ToolHive's operator and proxies to skep's and back on a real node (as root; builds ToolHive once)
	$(progress) 'Building ToolHive and its images'
	@hack/image thv-operator >/dev/null
	@hack/image thv-proxyrunner >/dev/null
	$(progress) 'Migrating'
	@$(node) --toolhive "$$(cd hack/toolhive && GOFLAGS=-mod=readonly GOSUMDB=off GOWORK=off go list -m -f '{{.Dir}}' github.com/stacklok/toolhive)"

# Each file of the suites has its line, so a failure in one does not end the others, or fail the target: docs/conformance.md has what to expect.
.PHONY: toolhive-e2e
toolhive-e2e: for-node ## Run ToolHive's end-to-end suites, unchanged, against skep on a real node (as root, half an hour; CASE=part of the name of a file)
	$(progress) 'Building the suites, and images under the names that they pull'
	@hack/toolhive-e2e
	$(progress) 'Running the suites'
	@$(node) --shell <<<'exec hack/toolhive-e2e run $(CASE)'

# Prerequisites of the targets above.
.PHONY: for-node
for-node: plain
	$(progress) 'Checking the prerequisites of a node'
	@for part in 'programs --all' 'programs --node' 'programs --dex' packages 'packages --podman' 'packages --chromium' \
		'npm sdk' 'npm browser' helm redis; do hack/$$part >/dev/null; done
	$(progress) 'Building the cases'
	cargo build $(as_tested) --bin skep-e2e
	@ln -f $(built)/skep-e2e $(plain)/skep-e2e
	$(progress) 'Building the images'
	@hack/image skep $(plain)/skep >/dev/null
	@hack/image server-everything >/dev/null
	@hack/image pause >/dev/null
	@hack/image dex >/dev/null

.PHONY: fuzz
fuzz: ## Fuzz the parsers of untrusted input, for a minute (FUZZ_SECONDS=60)
	$(progress) 'Fuzzing'
	@fuzz/run

CRATES ?= authz auth converge workflow
SHARD ?= 0/1
.PHONY: mutants
mutants: ## Change the code of CRATES="authz auth converge workflow" in small ways, and list what no test notices: hours, or SHARD=0/8 of it
	@hack/tools cargo-mutants >/dev/null
	$(progress) 'Testing changed code'
	cargo mutants $(CRATES:%=--package skep-%) --shard $(SHARD) --test-tool nextest --output target

.PHONY: conformance
conformance: ## Run the official conformance suite, and third-party clients and servers, through the proxy
	@hack/tools cargo-nextest >/dev/null
	$(progress) 'Testing the proxy with third-party clients and servers'
	cargo nextest run -p skep-interop $(locked)

N ?= 200
OPERATOR ?=
.PHONY: bench-operator
bench-operator: build programs ## Measure the operator for N=200 servers; OPERATOR="command line" adds another
	$(progress) 'Building the benchmark'
	cargo build --release -p skep-bench-operator $(locked)
	$(progress) 'Measuring, which takes about two minutes for 200 servers'
	@KUBEBUILDER_ASSETS=$$(hack/programs) $(released)/skep-bench-operator --servers '$(N)' \
		--skep $(released)/skep --operator '$(OPERATOR)'

OTHER ?=
.PHONY: bench-proxy
bench-proxy: build ## Compare the proxy with direct calls to the server; NGINX=1 adds nginx, REMOTE=1 a remote server, WATCHERS=10 consoles, OTHER="NAME=command line" another; TURNS=31 for a busy machine
	$(progress) 'Building the benchmark'
	cargo build --release -p skep-bench-proxy $(locked)
	@$(released)/skep-bench-proxy --skep '$(released)/skep proxy run --config={config} none' \
		$(if $(NGINX),--nginx) $(if $(REMOTE),--remote) $(if $(WATCHERS),--watchers '$(WATCHERS)') $(if $(TURNS),--turns '$(TURNS)' --seconds 1) $(if $(OTHER),--other '$(OTHER)')

MINUTES ?= 60
.PHONY: soak
soak: build programs ## Operator and proxy under constant change and mixed load for MINUTES=60 each, at the same time
	$(progress) 'Building the load'
	cargo build -p skep-bench-operator -p skep-bench-proxy $(locked)
	$(progress) 'Running both for $(MINUTES) minutes; the proxy prints to target/soak-proxy.txt'
	@KUBEBUILDER_ASSETS=$$(hack/programs); export KUBEBUILDER_ASSETS; \
		$(built)/skep-bench-proxy --soak '$(MINUTES)' > target/soak-proxy.txt & proxy=$$!; \
		$(built)/skep-bench-operator --soak '$(MINUTES)' --skep $(released)/skep; wait $$proxy; cat target/soak-proxy.txt

.PHONY: bench-vmcp
bench-vmcp: build ## Compare the virtual server with direct calls to a backend; OTHER="NAME=command line" adds another
	$(progress) 'Building the benchmark'
	cargo build --release -p skep-bench-vmcp $(locked)
	@$(released)/skep-bench-vmcp --skep '$(released)/skep vmcp serve --config {config} --host 127.0.0.1 --port {port}' \
		$(if $(OTHER),--other '$(OTHER)') $(if $(REST),--rest '$(REST)')

.PHONY: bench-authserver
bench-authserver: build ## Measure logins, refreshes and memory of the authorization server; OTHER="NAME=command line" adds another
	$(progress) 'Building the benchmark'
	cargo build --release -p skep-bench-authserver $(locked)
	@$(released)/skep-bench-authserver --skep '$(released)/skep vmcp serve --config {config} --host 127.0.0.1 --port {port}' \
		$(if $(OTHER),--other '$(OTHER)') $(if $(REST),--rest '$(REST)')

SKEP_TOOL_SEARCH ?= ../shared/bench/tool-search
SKEP_TOOL_SEARCH_MODEL ?=
.PHONY: bench-tool-search
bench-tool-search: ## Measure the tool search on the files in SKEP_TOOL_SEARCH; SKEP_TOOL_SEARCH_MODEL=FOLDER adds a static model
	$(progress) 'Building the benchmark'
	cargo build --release -p skep-bench-tool-search $(locked)
	@$(released)/skep-bench-tool-search --data '$(SKEP_TOOL_SEARCH)' \
		$(if $(SKEP_TOOL_SEARCH_MODEL),--model '$(SKEP_TOOL_SEARCH_MODEL)')

.PHONY: lint
lint: ## Check format, lints, dependencies and generated files
	$(progress) 'Checking the format'
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	$(progress) 'Checking with clippy'
	cargo clippy --workspace --all-targets $(locked) -- -D warnings
	$(progress) 'Checking the dependencies'
	@hack/tools cargo-deny cargo-machete >/dev/null
	cargo deny check bans licenses sources
	@if cargo deny fetch db 2>/dev/null; then \
		cargo deny check --disable-fetch advisories; \
	else \
		echo '==> Advisories were not checked: their database, https://github.com/rustsec/advisory-db, is unreachable'; \
	fi
	cargo machete
	$(progress) 'Checking that the generated files are up to date'
	@$(MAKE) --no-print-directory target/crds target/rbac
	@diff -ru $(crds) target/crds || { echo 'error: $(crds) is not up to date: run make crds, and commit it' >&2; exit 1; }
	@diff -ru $(rbac) target/rbac || { echo 'error: $(rbac) is not up to date: run make rbac, and commit it' >&2; exit 1; }
	@$(MAKE) --no-print-directory charts

.PHONY: charts
charts: ## Check the charts: helm lint, and snapshots of rendered manifests (hack/charts --renew after a change)
	$(progress) 'Checking the charts'
	@hack/charts

.PHONY: crds rbac
crds: target/crds ## Write the CRDs that the charts install
rbac: target/rbac ## Write the RBAC rules that the charts install
crds rbac:
	$(progress) 'Writing $($@)'
	@rm -rf $($@)
	@mkdir -p $(dir $($@))
	@cp -r $< $($@)

.PHONY: docs
docs: ## Write the generated tables of docs/troubleshooting.md
	$(progress) 'Writing docs/troubleshooting.md'
	@SKEP_RENEW_DOCS=1 cargo test --quiet -p skep-api --test it $(locked) documented::

.PHONY: target/crds target/rbac
target/crds:
	@rm -rf $@
	@cargo build --quiet $(as_tested) --bin skep
	@$(built)/skep crds --dir $@

target/rbac:
	@rm -rf $@ && mkdir -p $@
	@cargo build --quiet $(as_tested) --bin skep
	@for part in operator leader-election migration console console-sessions; do $(built)/skep rbac $$part >$@/$$part.yaml; done

.PHONY: programs
programs: ## Install etcd, kube-apiserver and kube-controller-manager for the tests, into the cache
	$(progress) 'Checking the programs of the control plane'
	@hack/programs

.PHONY: clean
clean: ## Remove build outputs; programs and tools in the cache stay
	$(progress) 'Removing build outputs'
	cargo clean
