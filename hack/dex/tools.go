//go:build tools

// Package dex pins the identity provider of tests. hack/programs builds from it.
package dex

import _ "github.com/dexidp/dex/cmd/dex"
