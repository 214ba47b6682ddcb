//go:build tools

// Package etcd pins the etcd that skep's tests run against. hack/programs builds from it.
package etcd

import _ "go.etcd.io/etcd/server/v3"
