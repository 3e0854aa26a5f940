# `make` lists the targets. CI runs the same ones (.ci/run).
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:

UV_VERSION := 0.13.9
# A caller's Python settings must not reach the project's own environment.
unexport PYTHONDONTWRITEBYTECODE PYTHONHOME PYTHONPATH PYTHONWARNINGS PYTHONSTARTUP VIRTUAL_ENV PYTEST_ADDOPTS
export SGLANG_OPERATOR_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sglang-operator

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# They wait more than they compute. A file's tests share what they start, so they stay together.
TWO_AT_ONCE := -n 2 --dist loadfile --no-loadscope-reorder
# The cluster's kubectl and kubeconfig.
E2E_ENV := . e2e/kind/env.sh &&

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it
.PHONY: quickstart down
quickstart: ## From nothing to an answered chat: cluster, images, operator, model (again: about a minute)
	@e2e/quickstart.sh

down: ## Stop the cluster and remove its state; what was built stays cached
	@e2e/kind/down.sh

##@ Test it
.PHONY: check test-integration e2e test soak
check: venv ## Everything that needs no cluster: linters, types, unit and golden tests (under 2 min)
	@.ci/stage "ruff check" $(BIN)/ruff check .
	@.ci/stage "ruff format" $(BIN)/ruff format --check --quiet .
	@.ci/stage "generated files" .ci/generated --check
	@.ci/stage "import-linter" $(BIN)/lint-imports
	@.ci/stage "mypy" $(BIN)/mypy
	@.ci/stage "helm" e2e/helm.sh >/dev/null
	@.ci/stage "unit and golden tests" $(PYTEST) tests/unit tests/golden

test-integration: venv ## Against a real API server (started and stopped by the tests)
	@[ -n "$${KUBEBUILDER_ASSETS:-}" ] || .ci/stage "control plane binaries" e2e/kind/build.sh kube
	@.ci/stage "CPU engine environment" images/build.sh engine-env
	@.ci/stage "integration tests" $(PYTEST) $(TWO_AT_ONCE) -m "not soak and not quiet" tests/integration
	@.ci/stage "measuring tests" $(PYTEST) -m "quiet and not soak" tests/integration

e2e: venv ## The quickstart, then the tests on its kind cluster
	@.ci/stage "quickstart" e2e/quickstart.sh
	@.ci/stage "end-to-end tests" bash -c '$(E2E_ENV) exec $(PYTEST) -m "not soak" e2e/tests'

test: ## All tests, cheap ones first (about 40 min, 60 min on a fresh machine)
	@.ci/stage check $(MAKE) check
	@.ci/stage test-integration $(MAKE) test-integration
	@.ci/stage e2e $(MAKE) e2e

soak: venv ## What takes long: an hour of work (SGLANG_OPERATOR_SOAK_S), and five rounds of all that may lose requests
	@$(PYTEST) -m soak --timeout 0 tests/integration
	@e2e/deploy.sh
	@$(E2E_ENV) SGLANG_E2E_REPEATS=5 $(PYTEST) e2e/tests/test_no_request_lost.py e2e/tests/test_router.py

##@ Make it
.PHONY: generate golden images engine-env venv clean-cache
generate: venv ## Write the CRDs from the API models, also into the chart
	@.ci/generated

golden: venv ## Rewrite the golden files; read the diff before you commit it
	@$(PYTEST) tests/golden --update-golden

images: ## Build the operator, engine and model images
	@images/build.sh

engine-env: ## Build the Python environment of the CPU engine
	@images/build.sh engine-env

venv: ## Install uv and the locked Python environment into .uv/ and .venv/
	@.ci/bootstrap $(UV_VERSION)

clean-cache: down ## Remove all that was built for clusters and images (the next quickstart starts from nothing)
	@case "$(SGLANG_OPERATOR_CACHE)" in \
	  */sglang-operator) rm -rf --one-file-system "$(SGLANG_OPERATOR_CACHE)" ;; \
	  *) echo "$(SGLANG_OPERATOR_CACHE) is not removed: its name is not sglang-operator" >&2; exit 1 ;; \
	esac
