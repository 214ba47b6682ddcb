// Pins the module whose suite judges scripts. Nothing of it is built, so `go mod tidy` does not apply.
module skep.dev/hack/starlark-go

go 1.26

require go.starlark.net v0.0.0-20260908191801-89a6a09411d5
