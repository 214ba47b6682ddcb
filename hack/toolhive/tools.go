//go:build tools

// Package toolhive pins ToolHive, from which a migration is tested. hack/programs builds from it.
package toolhive

import (
	_ "github.com/stacklok/toolhive/cmd/thv-operator"
	_ "github.com/stacklok/toolhive/cmd/thv-proxyrunner"
	_ "github.com/stacklok/toolhive/cmd/vmcp"
)
