# Everything needs Go and nothing else, but for conformance, clients, agent, browser, awstest and template, which need npm or pip too,
# and deploy, which needs AWS's sam and aws; tools come into .tools, but for Chromium, which root installs where it is missing.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export CGO_ENABLED ?= 0

FUZZTIME ?= 2s
BENCH ?= .
# Lambda without net/rpc, and net/http without HTTP/2, which AWS does not need of a client and the runtime never speaks: smaller, sooner up.
TAGS := lambda.norpc,nethttpomithttp2
VERSION ?=
BUILD := go build -trimpath -tags $(TAGS) -ldflags='-s -w -X main.version=$(VERSION)'
# Calls that are inlined make a twelfth of a function's bytes. Only what every call and every mail passes is worth them.
SHARED := github.com/buzon-mail/buzon/shared
COLD := github.com/... golang.org/x/... go.etcd.io/... net/http crypto/tls crypto/x509 encoding/xml encoding/asn1 math/big vendor/golang.org/x/...
HOT := $(addprefix $(SHARED)/,$(addsuffix /...,mcp op optool rest inboxops inboxstore store jsonwalk lambdaedge ratelimit seal mail mailauth pipeline)) \
	github.com/danielgtaylor/... github.com/microcosm-cc/... github.com/emersion/... golang.org/x/net/html/...
LEAN := $(COLD:%=-gcflags=%=-l) $(HOT:%=-gcflags=%=)
# The Lambda functions: every folder of functions/ but the local process.
LAMBDAS := $(filter-out local,$(notdir $(patsubst %/,%,$(dir $(wildcard functions/*/main.go)))))
# The race detector needs a C compiler; without one the same tests run without it, and say so.
RACE := $(shell command -v $$(go env CC) >/dev/null 2>&1 && echo -race)

# The parts of check never run at once, whatever MAKEFLAGS says: its last lines are the summary of the tests.
.NOTPARALLEL:

.PHONY: help run test check fmt vet lint generated modules fuzz race conformance clients agent browser awstest rie chaos template bench microbench build flags invoke deploy generate clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## build and start the whole service with two sample organizations; Ctrl-C ends it
	@echo "building (the first time takes a minute) ..."
	@go build -o dist/buzon ./functions/local
	@BUZON_DEMO=$${BUZON_DEMO:-1} exec ./dist/buzon serve

test: ## all tests, with no network and no AWS account
	go test ./...

check: fmt vet lint generated modules fuzz conformance clients agent browser awstest rie chaos template race ## what CI runs: format, vet, staticcheck, generated files, modules, fuzz, conformance, clients, agent, browser, AWS stand-in, bootstraps under the emulator, chaos, template, race + shuffled tests

fmt: ## fail when a file is not gofmt's
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "not formatted, run gofmt -w on:"; echo "$$out"; exit 1; fi

vet: ## go vet, in every module
	go vet ./...
	cd scripts/rie && go vet ./...
	cd scripts/bench && go vet ./...
	cd scripts/clients/go && go vet ./...
	cd scripts/check-peers && go vet ./...

lint: .tools/staticcheck ## staticcheck
	.tools/staticcheck -tags $(TAGS) ./...

generated: ## fail when generated files are not up to date
	@scripts/generated.sh

modules: ## fail when a function links other modules than scripts/modules lists
	@scripts/modules.sh

fuzz: ## run every fuzz target for FUZZTIME (2s)
	@FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

race: ## tests with the race detector, in random order; of what takes its time, less: make test does all of it
ifeq ($(RACE),)
	@echo "no C compiler: running without the race detector"
endif
	CGO_ENABLED=$(if $(RACE),1,0) go test $(RACE) -shuffle=on -short ./...

conformance: ## the official MCP suite against shared/mcp, through every front door, and against the authorization server (npm)
	@go run ./scripts/conformance

clients: ## the official MCP clients, each in every mode, and signing in by themselves (npm, pip)
	@go run ./scripts/clients

agent: ## an agent without a model works a day against the service, which is killed in the middle, with a webhook receiver (npm)
	@go run ./scripts/agent

browser: ## Chromium at the sign-in and consent pages, with axe (npm; apt when there is no Chromium); pictures in .tools/browser/pictures
	@PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 go run ./scripts/browser

awstest: ## the engines on AWS against moto, a stand-in for it (pip)
	@go run ./scripts/awstest

# Not build-NAME, which makes the deployed bytes for arm64 too.
rie: .tools/aws-lambda-rie ## every event file to each of the three bootstraps, under AWS's Runtime Interface Emulator
	@for f in $(LAMBDAS); do $(BUILD) $(LEAN) -o dist/native/$$f/bootstrap ./functions/$$f || exit 1; done
	@go run ./scripts/emulate

CHAOS ?=
chaos: ## 2,000 mails and 20,000 calls while instances die and storage fails (CHAOS="-seed 7"; the seed is printed)
	@go run ./internal/chaos $(CHAOS)

template: .tools/template/.installed ## lint template.yaml (pip); with sam installed, its validation too
	AWS_DEFAULT_REGION=eu-west-1 .tools/template/bin/cfn-lint template.yaml
	@if command -v sam >/dev/null; then sam validate --lint --template template.yaml; fi

bench: ## the product beside floors, peers and the budgets of DESIGN.md, in one run (BENCHFLAGS="-only calls -rounds 30"; -h lists them)
	@cd scripts/bench && go build -o ../../.tools/bench . && exec ../../.tools/bench $(BENCHFLAGS)

microbench: ## the rooms' own benchmarks (BENCH=pattern)
	go test -run='^$$' -bench='$(BENCH)' -benchmem ./... | grep -vE '^(PASS|ok|\?|goos|goarch)'

build: $(addprefix build-,$(LAMBDAS)) ## dist/buzon, and the Lambda bootstraps: dist/NAME/bootstrap (linux/arm64) and dist/native/NAME/bootstrap (VERSION=1.2.3)
	$(BUILD) -o dist/buzon ./functions/local

build-%:
	GOOS=linux GOARCH=arm64 $(BUILD) $(LEAN) -o dist/$*/bootstrap ./functions/$*
	$(BUILD) $(LEAN) -o dist/native/$*/bootstrap ./functions/$*

# The flags of the functions, one a line, for the benchmark.
flags:
	@printf '%s\n' -trimpath -tags=$(TAGS) '-ldflags=-s -w' $(LEAN)

# sam build calls these (BuildMethod: makefile): build-ApiFunction, build-WorkerFunction, build-InboundFunction. What they make is
# for arm64; LAMBDA_GOARCH=amd64 goes with the parameter Architecture=x86_64.
LAMBDA_GOARCH ?= arm64
build-ApiFunction build-WorkerFunction build-InboundFunction: build-%Function:
	GOOS=linux GOARCH=$(LAMBDA_GOARCH) $(BUILD) $(LEAN) -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/$(shell echo $* | tr '[:upper:]' '[:lower:]')

deploy: ## build and deploy to AWS (sam, aws and an account; docs/deploy.md)
	@scripts/deploy.sh

invoke: .tools/aws-lambda-rie ## send EVENT=events/X.json to its function under AWS's emulator and print the reply
	@f=$$(scripts/invoke.sh --function "$(EVENT)") && $(BUILD) $(LEAN) -o dist/native/$$f/bootstrap ./functions/$$f
	@scripts/invoke.sh "$(EVENT)"

generate: ## make the generated files anew: tool list, OpenAPI, module lists
	go generate ./...
	@scripts/modules.sh -update

clean: ## remove what was built; .buzon, the data of make run, stays
	rm -rf dist .tools

.tools/staticcheck: scripts/tools/go.mod scripts/tools/go.sum
	cd scripts/tools && go build -o ../../$@ honnef.co/go/tools/cmd/staticcheck

.tools/aws-lambda-rie: scripts/rie/go.mod scripts/rie/go.sum
	cd scripts/rie && go build -o ../../$@ github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie

.tools/template/.installed: scripts/template/requirements.txt
	python3 -m venv --clear .tools/template
	.tools/template/bin/pip install --quiet --no-deps --only-binary :all: --disable-pip-version-check -r scripts/template/requirements.txt
	@touch $@
