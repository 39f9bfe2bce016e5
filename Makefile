# Every target works with Go alone, but `race`, whose detector wants gcc.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
SECONDS ?= 20
SEEDS   ?= 1000
IMAGE_TAG = $(shell echo '$(VERSION)' | tr -c 'a-zA-Z0-9_.\n-' -)
COMPOSE   = $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose) -p strake -f deploy/compose/compose.yaml

.PHONY: torture test-the-tester build test race lint generate generate-check fuzz sim demo run bench image up down e2e clean help

build: ## the static binary bin/strake
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X strake/ctl.Version=$(VERSION)" -o bin/strake ./cmd/strake

test: build ## vet and every test, whole cells of processes included
	$(GO) vet ./...
	$(GO) test -timeout 20m ./...

race: ## the tests again under the race detector, the long ones cut short
	$(GO) build -race -o /dev/null ./cmd/strake
	$(GO) test -race -short -timeout 20m ./...

lint: ## format, vet, staticcheck, go.mod as the code needs it
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) mod tidy -diff
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

generate: ## the protobuf code
	$(GO) run ./proto/generate

generate-check: ## fails when the committed protobuf code is stale
	$(GO) run ./proto/generate -check

fuzz: ## each fuzz target for SECONDS; a failure does not stop the others
	$(GO) run ./internal/tidy/fuzz -seconds $(SECONDS)

sim: ## the seeded cluster: SEEDS=n [FIRST=seed], or SEED=n for one
	$(GO) test ./e2e/sim -run TestSeeds -count=1 -v -args -seeds=$(if $(SEED),1,$(SEEDS)) -first=$(if $(SEED),$(SEED),$(or $(FIRST),1))

torture: ## does harm to a cell of processes under a verifying writer: MINUTES=n [SEED=n]
	$(GO) test ./e2e -run TestTorture -count=1 -timeout 0 -v -args -torture.minutes=$(or $(MINUTES),10) -torture.seed=$(or $(SEED),0)

test-the-tester: ## plants known bugs one after another; each must be caught by random seeds
	$(GO) run -tags planted ./e2e/sim/tester

demo: build ## the main job, end to end, with servers and a writer killed
	$(GO) run ./e2e/demo

run: build ## the demo's cell, left up until Ctrl-C
	$(GO) run ./e2e/demo -run

image: build bin/etcd bin/etcdctl ## the container images strake and strake-etcd
	rm -rf bin/image && mkdir -p bin/image/empty && cp bin/strake bin/etcd bin/etcdctl bin/image
	docker build -q -t strake:$(IMAGE_TAG) -t strake:latest -f deploy/image/Dockerfile bin/image
	docker build -q -t strake-etcd:latest -f deploy/etcd/Dockerfile bin/image

bin/etcd: deploy/etcd/go.mod deploy/etcd/go.sum
	mkdir -p bin && cp "$$(CGO_ENABLED=0 $(GO) -C deploy/etcd tool -n server)" $@

bin/etcdctl: deploy/etcd/go.mod deploy/etcd/go.sum
	mkdir -p bin && cp "$$(CGO_ENABLED=0 $(GO) -C deploy/etcd tool -n etcdctl)" $@

up: image ## a cell in containers: etcd, 3 metadata servers, 8 chunk servers
	$(COMPOSE) up -d
	@for i in $$(seq 120); do \
	  docker exec strake-meta-1 /strake status -o json 2>/dev/null | grep -q '"servers_up": 8' && break; \
	  [ $$i -lt 120 ] || { echo "the cell is not up after a minute" >&2; exit 1; }; sleep 0.5; done
	docker exec strake-meta-1 /strake status

down: ## take that cell away, its data with it
	$(COMPOSE) down -v

e2e: ## cells in containers, through faults, upgrades and lost machines: [SEED=n] [BARS=1]
	$(GO) test ./e2e/containers -count=1 -timeout 40m -v -args -containers $(if $(SEED),-seed=$(SEED)) $(if $(BARS),-bars)

bench: ## the packages' benchmarks
	$(GO) test -run '^$$' -bench . -benchtime 1s ./...

clean: ## what the targets made
	rm -rf bin

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16
