# shellcheck shell=bash disable=SC2034 # used by the scripts that source this
# Settings of every script here. Source it (`. e2e/kind/env.sh`) and kubectl, kind and docker reach the cluster:
# it sets variables, KUBECONFIG, DOCKER_HOST (where the dockerd is ours) and PATH, and nothing else.
KIND_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${SGLANG_OPERATOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sglang-operator} # kept by down.sh
# Run-time state, removed by down.sh. Without root only a user's own Docker can be used, and little is kept.
if [ "$(id -u)" = 0 ]; then STATE=/var/lib/sglang-operator; else STATE=$CACHE/state; fi
BUILD=$CACHE/kind
BIN=$BUILD/bin
CLUSTER=sglang
GPUS_PER_NODE=${GPUS_PER_NODE:-4}

K8S_VERSION=v1.37.2
CONTAINERD_VERSION=v2.4.2
RUNC_VERSION=v1.5.3
CNI_VERSION=v1.10.0
KIND_VERSION=v0.33.0
# What kind 0.33 starts by default; used where Docker can pull it.
PUBLIC_NODE_IMAGE=${KIND_NODE_IMAGE:-kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5}
# Names and tags that kubeadm 1.37 asks for (kubeadm config images list).
PAUSE_IMAGE=registry.k8s.io/pause:3.10.2
ETCD_IMAGE=registry.k8s.io/etcd:3.7.0-0
COREDNS_IMAGE=registry.k8s.io/coredns/coredns:v1.14.6
AGENT_IMAGE=docker.io/sglang-operator/node-agent:dev # minicni and fakegpu
PROBE_IMAGE=docker.io/sglang-operator/probe:dev      # HTTP client and server for smoke.sh

DOCKER_DATA=$CACHE/docker
DOCKER_STATE=$STATE/docker
OWN_DOCKER_HOST=unix://$DOCKER_STATE/docker.sock

export KUBECONFIG=$CACHE/kubeconfig KIND_CLUSTER_NAME=$CLUSTER
case :$PATH: in *":$BIN:"*) ;; *) export PATH=$BIN:$PATH ;; esac
if [ -S "$DOCKER_STATE/docker.sock" ]; then export DOCKER_HOST=$OWN_DOCKER_HOST; fi
