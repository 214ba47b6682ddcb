//go:build tools

// Package helmcli pins the helm that checks the charts where the machine has none. hack/programs builds from it.
package helmcli

import _ "helm.sh/helm/v4/cmd/helm"
