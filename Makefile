# Two commands: `make bench` measures, `make test` tests. Both set up .venv on first use and reuse it afterwards.
# `make test ALL=1` runs those tests too that take as long as all others together, as CI does. `make fast` runs those that need
# neither torch nor processes of their own: a minute. `make check` is lint, types and `make size`, which counts how much there
# is to hold. `make bundle` makes a folder of wheels for a machine without a network. `make site` makes the pages a site.
PYTHON ?= python3
# What to measure on. xpu and cuda have an environment of their own, with PyTorch's wheels for that card and without IPEX.
DEVICE ?= cpu
EXTRA ?= $(if $(filter cpu,$(DEVICE)),ipex,stock)
VENV := .venv$(if $(filter-out cpu,$(DEVICE)),-$(DEVICE))
READY := $(VENV)/.ready-$(EXTRA)
# Where torch comes from, if not from pip's own index. WHEELS=FOLDER names a folder of wheels instead. Without CUDA's libraries it
# takes one gigabyte: EXTRA=stock INDEX=https://download.pytorch.org/whl/cpu.
INDEX_xpu := https://download.pytorch.org/whl/xpu
INDEX ?= $(INDEX_$(DEVICE))
TORCH := $(if $(WHEELS),--no-index --find-links $(WHEELS),$(if $(INDEX),--index-url $(INDEX)))
ifneq ($(if $(TORCH),$(EXTRA),stock),stock)
$(error EXTRA=$(EXTRA) comes with a torch of its own: docs/how-to/first-run-on-an-intel-gpu.md says how to install IPEX for a GPU)
endif
# A terminal gets pip's own progress, a log only its warnings.
QUIET := $(shell test -t 2 || echo -q)
# The folder of `make bundle`, and what it must suffice for.
BUNDLE := bundle
FOR := .[$(EXTRA)]
# What the environment takes, in GB. While pip installs, it needs as much as 4 more for a while.
ROOM := $(if $(filter %/cpu,$(INDEX)),2,8)
WORKFLOWS := $(wildcard docs/ci/github-*.yml docs/ci/xpu-*.yml)
SCHEMA := $(VENV)/bin/check-jsonschema -q --builtin-schema vendor
# Tests run side by side, because none of them measures: a worker per core, and a few GB of memory each.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 1); test $$n -gt 4 && echo 4 || echo $$n)

.PHONY: bench test fast check size bundle release-check owner site clean card

bench: $(READY)
	$(VENV)/bin/python -m pytest suites/ --device $(DEVICE)

test: $(READY)
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal $(if $(ALL),,-m "not long")

fast: $(READY)
	$(VENV)/bin/python -m pytest -n $(WORKERS) -m fast

check: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy --config-file tests/mypy.ini tests benchmarks
	$(VENV)/bin/lint-imports
	$(VENV)/bin/zizmor --offline --quiet --config .github/zizmor.yml .github action.yml $(WORKFLOWS)
	$(SCHEMA).github-workflows .github/workflows/*.yml $(WORKFLOWS)
	$(SCHEMA).github-actions action.yml
	$(SCHEMA).dependabot .github/dependabot.yml
	$(SCHEMA).citation-file-format CITATION.cff
	$(VENV)/bin/python tests/size.py

size: $(READY)
	$(VENV)/bin/python tests/size.py

# All as wheels, ipexperf among them, so that installing them builds nothing. A folder that is there already is not mixed up
# with another version: it must be empty.
bundle:
	@test -z "$$(ls -A $(BUNDLE) 2>/dev/null)" || { echo "error: $(BUNDLE) is not empty: remove it, or say BUNDLE=DIR" >&2; exit 1; }
	@mkdir -p $(BUNDLE)
	$(PYTHON) -m pip wheel -q -c constraints.txt -w $(BUNDLE) "$(FOR)"
	@cd $(BUNDLE) && sha256sum *.whl > SHA256SUMS
	@echo "$(BUNDLE): $$(ls $(BUNDLE)/*.whl | wc -l) wheels for $$($(PYTHON) --version); docs/reference/devices.md says how to install them"

# TAG=v1.2.3 stands for a tag of this commit. FOLDER=DIR keeps what was built, and an environment of each Python.
release-check:
	@PYTHON=$(PYTHON) .ci/release $(FOLDER)

# With TAG=v1.2.3 the templates name that release too.
owner:
	$(if $(NAME),,$(error whose is it? make owner NAME=acme))
	@git grep -lE 'OWNER[/]ipexperf|/ipexperf@[H]ASH' -- ':!tests' | xargs -r sed -i -e 's,OWNER\(/ipexperf\),$(NAME)\1,' \
	    $(if $(TAG),-e 's/@HASH # TAG/@HASH # $(TAG)/' -e "s/@HASH/@$$(git rev-parse '$(TAG)^{commit}')/")

# The pages as a site, in an environment of its own: open site/index.html.
site: .venv-docs/.ready
	.venv-docs/bin/python -m mkdocs build

.venv-docs/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install $(QUIET) --upgrade "pip>=25.1"
	.venv-docs/bin/python -m pip install $(QUIET) -c constraints.txt --group docs
	@touch $@

# Before gigabytes are fetched for it.
card:
	@test $(DEVICE) = cpu || $(PYTHON) -m ipexperf.bench.machine.diagnosis $(DEVICE)

$(READY): pyproject.toml constraints.txt | card
	@free=$$(df -Pk . | awk 'NR == 2 {print int($$4 / 1048576)}'); \
	test -d $(VENV) || test -z "$$free" || test "$$free" -ge $(ROOM) || { \
	    echo "error: $(VENV) takes about $(ROOM) GB and here are $$free GB free: free some, or say ROOM=0 to try" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo "installing torch and its companions into $(VENV): a few minutes, several GB"
	$(VENV)/bin/python -m pip install $(QUIET) --upgrade "pip>=23.1"
	$(if $(TORCH),$(VENV)/bin/python -m pip install $(QUIET) $(TORCH) torch torchvision)
	$(VENV)/bin/python -m pip install $(QUIET) $(if $(TORCH),-e ".[dev]",-c constraints.txt -e ".[$(EXTRA),dev]")
	@touch $@

clean:
	rm -rf .venv .venv-* .ipexperf build site *.egg-info
