# Everything from a fresh clone. `make` alone shows what there is; only Python 3.11 or newer is needed besides make.

PYTHON ?= python3
ARGS ?=
REQUESTS ?= 50000
IN_VENV := .venv/bin/python
PATHS := codecs clients inspector tests bench docs examples manage.py

.DEFAULT_GOAL := help
.PHONY: help run test test-long compose-test docs screenshots bench bench-long reader crash soak failpoints fuzz fuzz-api wycheproof mutants lint audit sbom kube-check format client lock clean venv venv-dev node-dev have-python

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: venv ## start everything here and show the samples; options as in make run ARGS='--port 8001' or ARGS=--once
	@exec $(IN_VENV) -m inspector.embedded.run $(ARGS)

# Hundreds of Python processes start in the tests: what one compiled the others take, whatever the shell says of that.
test: venv-dev node-dev ## run the tests on a PostgreSQL of their own, but for the long ones; make test ARGS='-k words' runs some
	@PYTHONDONTWRITEBYTECODE= exec $(IN_VENV) -m pytest -n auto --dist worksteal -m 'not long' $(ARGS)

test-long: venv-dev ## run the long ones: crashes, failpoints, all themes and widths, growth, memory, PostgreSQL 15
	@PYTHONDONTWRITEBYTECODE= exec $(IN_VENV) -m pytest -n auto --dist worksteal -m long $(ARGS)

compose-test: venv-dev ## build docker-compose.yml and run it by a container engine, which root on Debian installs; skipped where there is none
	@COMPOSE_TEST=1 .ci/engine $(IN_VENV) -m pytest -m '' -x -v tests/containers $(ARGS) || { status=$$?; [ $$status -eq 75 ] && echo "compose-test: SKIPPED, nothing was run."; [ $$status -eq 75 ]; }

lint: venv-dev node-dev ## check format, rules, types, the directions of imports, templates, migrations and settings
	$(IN_VENV) -m ruff format --check $(PATHS)
	$(IN_VENV) -m ruff check $(PATHS)
	$(IN_VENV) -m mypy
	PYTHONPATH=codecs:. $(IN_VENV) -c 'from importlinter.cli import lint_imports_command as lint; lint()'
	$(IN_VENV) -m djlint --quiet --lint templates
	$(IN_VENV) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	BEHIND_HTTPS=true $(IN_VENV) manage.py check --deploy --fail-level WARNING
	@if $(HAS_NODE) && [ -x node_modules/.bin/eslint ]; then npm run --silent lint; fi

audit: venv-dev ## look for known weaknesses in what the product is built on, and for grave ones in its own code; SEMGREP_RULES too
	$(IN_VENV) .ci/audit
	$(IN_VENV) -m bandit --quiet --recursive --severity-level high --exclude '*/migrations/*' inspector codecs clients
	@if [ -z "$$SEMGREP_RULES" ]; then echo "audit: NOT ASKED: SEMGREP_RULES names no folder of semgrep-rules."; \
	elif ! command -v semgrep >/dev/null; then echo "audit: semgrep is missing: it is installed apart, its own packages do not fit ours." >&2; exit 1; \
	else semgrep scan --metrics=off --disable-version-check --quiet --error --severity ERROR --config "$$SEMGREP_RULES/python/django/security" inspector templates; fi

sbom: venv-dev ## write the bill of materials, CycloneDX, of the locked packages and the vendored files into dist/
	$(IN_VENV) .ci/sbom

# Its schemas are more files than half of what is installed here: they are kept apart.
kube-check: venv-dev ## compare deploy/kubernetes, as kubectl renders it, with the schemas of Kubernetes' own objects
	@$(IN_VENV) -m uv pip install --quiet --no-deps --require-hashes --target build/kubernetes -r requirements/kubernetes.txt
	@PYTHONPATH=build/kubernetes exec $(IN_VENV) -m pytest tests/test_kubernetes.py $(ARGS)

format: venv-dev ## bring the code into the form that lint asks for
	$(IN_VENV) -m ruff check --fix $(PATHS)
	$(IN_VENV) -m ruff format $(PATHS)

client: venv-dev ## build the wheel of the Python client into dist/
	cd clients/python && ../../$(IN_VENV) -m hatchling build -d ../../dist -t wheel

docs: venv-dev ## write the parts of the documents that come from the code
	@$(IN_VENV) docs/generate.py

screenshots: venv-dev ## take the pictures of README and docs from the running product; CHROMIUM names a browser
	@$(IN_VENV) docs/take_pictures.py

bench: venv-dev ## measure beside the reference implementations (REFERENCE_DIR=/path/to/them) and print the table of goals
	PYTHONPATH=codecs:. $(IN_VENV) -m bench.run $(ARGS)

bench-long: venv-dev ## the long forms, for hours: 1 GB through each door, growth to and searches in a million
	PYTHONPATH=codecs:. $(IN_VENV) -m bench.run --suite doors --size 1GB --words 600 --minutes 25
	PYTHONPATH=codecs:. $(IN_VENV) -m bench.run --suite ingest --only P12,P13 --long
	PYTHONPATH=codecs:. $(IN_VENV) -m bench.run --suite trees --long
	PYTHONPATH=codecs:. $(IN_VENV) -m bench.run --suite search --long
	PYTHONPATH=codecs:. $(IN_VENV) -m bench.run --suite exports --long

reader: venv-dev ## what somebody understands who sees the English alone; make reader ARGS='--seed 7 --into DIR', then ARGS='--score DIR'
	PYTHONPATH=codecs:. $(IN_VENV) -m bench.reader $(ARGS)

crash: venv-dev ## kill everything under load, again and again, and count; make crash ARGS='--cycles 300 --kill worker --seed 1'
	PYTHONPATH=codecs:. $(IN_VENV) -m bench.crash $(ARGS)

soak: venv-dev ## an hour at half of capacity with kills, slow clients and readers; make soak ARGS='--minutes 10' is shorter
	PYTHONPATH=codecs:. $(IN_VENV) -m bench.crash.soak $(ARGS)

failpoints: venv-dev ## let every statement of the way in fail in every way; `make test-long` tries a part of the ways
	@FAILPOINTS=all exec $(IN_VENV) -m pytest -n auto tests/inspector/intake/test_failpoints.py $(ARGS)

fuzz: venv-dev ## two million mutated inputs for each dialect; make fuzz ARGS='--inputs 20000 --dialect nslip' is shorter
	PYTHONPATH=codecs:. $(IN_VENV) -m tests.codecs.fuzzing $(ARGS)

fuzz-api: venv-dev ## fifty thousand requests made up from the API's description; make fuzz-api REQUESTS=2000 sends fewer
	@API_REQUESTS=$(REQUESTS) exec $(IN_VENV) -m pytest -m long tests/inspector/api/test_description.py $(ARGS)

wycheproof: venv-dev ## Wycheproof's vectors through what encrypts and signs here; WYCHEPROOF_DIR is their folder testvectors_v1
	PYTHONPATH=codecs:. $(IN_VENV) -m bench.wycheproof

mutants: venv-dev ## change random places of what must not be wrong, and see whether tests notice; make mutants ARGS='--count 5 --group ledger'
	@$(IN_VENV) -m uv pip install --quiet --no-deps --require-hashes --target build/mutants -r requirements/mutants.txt
	@PYTHONPATH=build/mutants:. exec $(IN_VENV) -m bench.mutants $(ARGS)

lock: venv-dev ## write requirements/*.txt anew from requirements/*.in
	$(IN_VENV) -m uv pip compile $(LOCKING) requirements/base.in -o requirements/base.txt
	$(IN_VENV) -m uv pip compile $(LOCKING) -c requirements/base.txt requirements/dev.in -o requirements/dev.txt
	$(IN_VENV) -m uv pip compile $(LOCKING) --no-deps requirements/kubernetes.in -o requirements/kubernetes.txt
	$(IN_VENV) -m uv pip compile $(LOCKING) --no-deps requirements/mutants.in -o requirements/mutants.txt

# Without header and annotation no address and no path of this machine gets into the files.
LOCKING := --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

clean: ## remove what was built, but not the data in .state
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
	@if [ -e .venv.lock ]; then rm -rf .venv .venv.lock; fi

venv: have-python
	@$(PYTHON) inspector/embedded/bootstrap.py base

venv-dev: have-python
	@$(PYTHON) inspector/embedded/bootstrap.py dev

# What checks the browser's scripts: in development only, the product needs no Node.
HAS_NODE := command -v npm >/dev/null && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'

node-dev:
	@if ! { $(HAS_NODE); }; then echo "There is no Node 20 or newer here: the browser's scripts are neither checked nor tested."; \
	elif [ ! node_modules/.package-lock.json -nt package-lock.json ]; then \
		npm ci --silent --no-progress || echo "npm could not install what checks the browser's scripts: they are neither checked nor tested." >&2; \
	fi

have-python:
	@command -v $(PYTHON) >/dev/null || { echo "Python is missing: install Python 3.11 or newer, or name one with make PYTHON=/path/to/python3." >&2; exit 1; }
