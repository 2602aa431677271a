# make demo | test | test-long | test-all | bench | fuzz | docs | clean
# Each target installs what is missing when run as root, and otherwise says exactly what to install.

SHELL := /bin/bash
OUT ?= out
# Without clang and libelf the kernel side cannot be built: everything else still is.
FEATURES = $(shell scripts/bpf-features)

.PHONY: demo test test-long test-all test-hwsim bench docs build format check clean setup fuzz help

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t12

setup: ## install missing system packages (root), or say which
	@scripts/phase setup scripts/setup

build: setup ## build the `lasthop` command
	cargo build --release $(FEATURES) -p lasthop-cli

demo: build ## run the first-light scenario: real TCP in the lab as root, otherwise in the simulator
	@scripts/demo $(OUT)/demo

format: setup
	@scripts/phase format cargo fmt --all --check

check: format ## format, lints, links of the API documentation
	@scripts/lints

test: format ## what must pass before a commit, at most a quarter of an hour
	@scripts/test

test-long: setup ## the long tests: reproductions, long runs in the lab
	@scripts/test-long

test-all: format ## both, in less time than one after the other
	@scripts/test --all

test-hwsim: setup ## the access point's agent on mac80211, in a virtual machine with simulated radios
	@scripts/test-hwsim

bench: build ## one line a figure: name value unit
	@scripts/bench

fuzz: ## each fuzz target for half a minute, and properties from new seeds for five
	@scripts/fuzz

docs: ## the book and the API documentation
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps $(FEATURES)
	@scripts/book

clean: ## remove build output and results
	cargo clean
	rm -rf $(OUT)
