# The commands for working on Tessera; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup docs demo dev serve test endurance check lint-fix fuzz bench bench-gpu gpu-once gpu-wheels chaos swapping screenshots clean lock sbom

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

# uv takes seconds. It ignores pip's settings: where it finds no package index, pip does it in minutes.
WANTED := --quiet -c constraints.txt -e ".[cpu,dev]"
INSTALL = $(BIN)/uv pip install --python $(BIN)/python $(WANTED) || $(BIN)/pip install $(WANTED)

# The build of torch for this machine's GPU driver, or for the CPU without one: TORCH_BACKEND=cpu, cu128, ...
# chooses another. Where PyTorch's own index does not answer, pip installs what it finds.
TORCH_BACKEND ?= auto
TORCH = UV_HTTP_TIMEOUT=15 $(BIN)/uv pip install --quiet --python $(BIN)/python \
  --torch-backend $(TORCH_BACKEND) "torch==2.13.0" 2>/dev/null || $(BIN)/pip install --quiet "torch==2.13.0"

setup: $(VENV)/.installed static/dist/.built build/guide.built ## environment, pinned dependencies, front end, guide

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Tessera needs Python 3.11 or newer; '$(PYTHON)' is older. Try: make PYTHON=python3.12"; exit 1; }
	@command -v node >/dev/null || { echo "Tessera needs Node.js 20.19 or newer (node is not on the PATH)."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt uv
	$(TORCH)
	$(INSTALL)
	@touch $@

node_modules/.installed: package.json package-lock.json
	npm ci --no-audit --no-fund --loglevel=error
	@touch $@

static/dist/.built: node_modules/.installed $(shell find static/src static/css -type f 2>/dev/null)
	npm run --silent build
	@touch $@

# A link that leads nowhere fails it. Seconds.
build/guide.built: $(VENV)/.installed zensical.toml $(shell find docs/guide -type f)
	NO_COLOR=1 $(BIN)/zensical build --strict --clean
	@touch $@

docs: build/guide.built ## the guide as a site in build/guide, which the portal serves at /help/

demo: setup ## the main job end to end, then the portal (EXIT=1: all but serve)
	$(BIN)/python manage.py demo $(if $(EXIT),--exit)

serve: setup ## the portal as it is, without the demo
	$(BIN)/python manage.py migrate --no-input --verbosity 0
	$(BIN)/python manage.py serve

dev: setup ## for developers: reloads Python, TypeScript and CSS
	$(BIN)/python manage.py migrate --no-input --verbosity 0
	npm run --silent watch & watch=$$!; trap "kill $$watch 2>/dev/null || true" EXIT; \
	  TESSERA_DEBUG=1 $(BIN)/python manage.py serve --reload

# The slowest first, two at a time.
CHECKS := check-types check-pages check-page-types check-api-types check-django check-deploy check-style check-imports check-templates
.PHONY: $(CHECKS)

check: setup ## ruff, mypy, imports, Django's checks, templates, tsc, eslint; setup checks the guide's links
	@$(MAKE) --no-print-directory -j2 $(CHECKS)

check-types:
	$(BIN)/mypy ml portal
	cd clients/python && ../../$(BIN)/mypy src
check-pages:
	npm run --silent lint
check-page-types:
	npm run --silent check
check-api-types:
	PYTHON=$(BIN)/python npm run --silent types -- --check
.PHONY: check-page-logic
check-page-logic:
	npm run --silent test
check-django:
	$(BIN)/python manage.py makemigrations --check --dry-run
check-deploy:
	$(BIN)/python -m tests.deploy_check
check-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
check-imports:
	$(BIN)/lint-imports
check-templates:
	$(BIN)/djlint templates --lint --quiet
# Compiled once, not in each worker of a run; the run itself reports what fails to compile.
.PHONY: tests-compiled
tests-compiled:
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 || true

# One process per core: more threads in each would only spin, waiting for one another.
test endurance: export OMP_NUM_THREADS := 1
test endurance: export OPENBLAS_NUM_THREADS := 1
test endurance: export OPENCV_FOR_THREADS_NUM := 1
# Hundreds of processes are started: without bytecode files, each would compile every module again.
test endurance: export PYTHONDONTWRITEBYTECODE :=
# Temporary files go into memory where 4 GiB are free there: on a disk, a test waits longer than it computes.
IN_MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4194304 { print "/dev/shm" }')
test endurance: export TMPDIR := $(or $(IN_MEMORY),$(TMPDIR))
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder
# CHOSEN="not endurance" adds the slow tests, of the browser and of killed processes among them: 20 minutes.
CHOSEN := not endurance and not slow
test: setup ## every check and every quick test, in minutes (CHOSEN="not endurance": as CI)
	@$(MAKE) --no-print-directory -j2 $(CHECKS) check-page-logic tests-compiled
	$(BIN)/python -m pytest $(or $(PYTEST),$(PARALLEL) -m "$(CHOSEN)")

ENDURANCE = $(shell grep -rl --include='test_*.py' mark.endurance tests)
endurance: setup ## minutes of killing, chaos, full disks, races, fuzzing; queries on PostgreSQL
	$(BIN)/python -m pytest $(or $(PYTEST),$(PARALLEL) -m endurance $(ENDURANCE))

fuzz: setup ## 2,000 damaged files, of all formats (FUZZ="--count 200 --seed 7"); UPLOADS=1 MINUTES=60
	$(BIN)/python -m tests.fuzz $(if $(UPLOADS),--uploads --minutes $(or $(MINUTES),10)) $(FUZZ)

bench: setup ## measure; writes docs/benchmarks.md
	$(BIN)/python -m tests.bench

bench-gpu: setup ## measure a GPU against the processors; writes docs/benchmarks-gpu.md
	$(BIN)/python -m tests.bench.gpu

gpu-once: setup ## GPU tests and measures within ten minutes, into the folder OUT
	$(BIN)/python -m tests.bench.gpu.all_steps

gpu-wheels: setup ## packages that a bare machine with a GPU lacks, into build/gpu-wheels
	$(BIN)/python -m tests.bench.gpu.wheels

chaos: setup ## ten minutes of killed processes, servers and clocks; reports what was lost (SEED=1)
	$(BIN)/python -m tests.chaos --minutes $(or $(MINUTES),10) --seed $(or $(SEED),1)

swapping: setup ## 10,000 searches while regions come and go and indexes are swapped (POSTGRESQL=1, MILVUS=1)
	$(BIN)/python -m tests.swapping $(if $(POSTGRESQL),--postgresql) $(if $(MILVUS),--milvus) \
	  $(if $(SEARCHES),--searches $(SEARCHES)) --json docs/results/swapping$(if $(POSTGRESQL),.postgresql)$(if $(MILVUS),.milvus).json

screenshots: setup ## take the pictures of docs/guide and docs/screenshots in a real browser
	$(BIN)/python -m tests.browser.screenshots

lock: ## lock the images' packages, with hashes; needs uv and TORCH_WHEELS
	requirements/lock.sh

sbom: node_modules/.installed ## what the images hold, as CycloneDX in build/sbom; needs uv
	@mkdir -p build/sbom
	for lock in cpu gpu; do uvx --from cyclonedx-bom==7.5.0 cyclonedx-py requirements requirements/$$lock.txt \
	  --pyproject pyproject.toml --output-file build/sbom/$$lock.json; done
	npm sbom --sbom-format cyclonedx > build/sbom/front.json

lint-fix: setup ## format and fix what can be fixed
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

clean: ## delete what was built, not what was stored (var/)
	rm -rf $(VENV) node_modules static/dist build *.egg-info
