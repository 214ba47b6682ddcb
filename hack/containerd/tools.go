//go:build tools

// Package containerd pins the container runtime of the node that `make e2e` starts.
// Nothing is compiled from here: go.mod and go.sum fix the versions, and hack/programs builds from them.
package containerd

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
