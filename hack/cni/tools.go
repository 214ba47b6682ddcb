//go:build tools

// Package cni pins what connects pods on the node that `make e2e` starts.
// Nothing is compiled from here: go.mod and go.sum fix the versions, and hack/programs builds from them.
package cni

import (
	_ "github.com/containernetworking/plugins/plugins/ipam/host-local"
	_ "github.com/containernetworking/plugins/plugins/main/loopback"
	_ "github.com/containernetworking/plugins/plugins/main/ptp"
)
