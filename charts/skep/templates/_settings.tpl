{{- /* The least number of operators. */ -}}
{{- define "skep.replicas" -}}
{{- $operator := .Values.operator -}}
{{- ternary $operator.autoscaling.minReplicas $operator.replicaCount $operator.autoscaling.enabled | int -}}
{{- end -}}

{{- /* Whether more than one operator runs: "true", or nothing. */ -}}
{{- define "skep.several" -}}
{{- if gt (include "skep.replicas" . | int) 1 }}true{{ end -}}
{{- end -}}

{{- /* The number of a port. Arguments: ports, name. */ -}}
{{- define "skep.port" -}}
{{- $name := .name -}}
{{- $number := "" -}}
{{- range .ports }}{{ if eq .name $name }}{{ $number = .containerPort }}{{ end }}{{ end -}}
{{- required (printf "operator.ports has none that is named %s" $name) $number | int -}}
{{- end -}}

{{- /* The names of Secrets that are given as names or as {name: ...}, with commas between. */ -}}
{{- define "skep.secretNames" -}}
{{- $names := list -}}
{{- range . }}{{ $names = append $names (kindIs "string" . | ternary . (get (kindIs "map" . | ternary . dict) "name")) }}{{ end -}}
{{- $names | uniq | join "," -}}
{{- end -}}

{{- /* The namespaces to work in, with commas between. Nothing for all. */ -}}
{{- define "skep.namespaces" -}}
{{- with .Values.operator.rbac -}}
{{- if eq .scope "namespace" -}}
{{- if not .allowedNamespaces }}{{ fail "operator.rbac.scope is namespace: name them in operator.rbac.allowedNamespaces" }}{{ end -}}
{{- .allowedNamespaces | uniq | join "," -}}
{{- else if .allowedNamespaces -}}
{{- fail "operator.rbac.allowedNamespaces is for the scope namespace: set operator.rbac.scope, or leave the names out" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Whether stored objects are moved: "true", or nothing. */ -}}
{{- define "skep.migrates" -}}
{{- if and .Values.operator.features.storageVersionMigrator (eq .Values.operator.rbac.scope "cluster") }}true{{ end -}}
{{- end -}}

{{- /* The Redis of servers that name none, as YAML: addr, secret, key. */ -}}
{{- define "skep.redis" -}}
{{- $own := .Values.operator.defaultRedis -}}
{{- $shared := (.Values.global | default dict).redis | default dict -}}
{{- if $own.addr -}}
{{- dict "addr" $own.addr "secret" $own.existingSecret "key" $own.existingSecretKey | toYaml -}}
{{- else if $shared.host -}}
{{- $addr := printf "%s:%d" $shared.host ($shared.port | default 6379 | int) -}}
{{- $secret := $own.existingSecret | default $shared.existingSecret -}}
{{- dict "addr" $addr "secret" $secret "key" ($own.existingSecretKey | default $shared.existingSecretKey) | toYaml -}}
{{- end -}}
{{- end -}}

{{- /* The subject of the console's tokens, if it shows calls. */ -}}
{{- define "skep.callsReader" -}}
{{- if and .Values.console.enabled .Values.console.calls -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "skep.fullname" . }}-console
{{- end -}}
{{- end -}}

{{- /* The variables of the operator that the chart sets. What operator.env sets is left out. */ -}}
{{- define "skep.variables" -}}
{{- $operator := .Values.operator -}}
{{- $redis := include "skep.redis" . | fromYaml -}}
{{- $openshift := or $operator.openshift (.Capabilities.APIVersions.Has "security.openshift.io/v1") -}}
{{- $values := dict
      "TOOLHIVE_RUNNER_IMAGE" ($operator.toolhiveRunnerImage | default $operator.image)
      "SKEP_QUICK_PROXIES" (ternary "true" "" $operator.quickProxies)
      "VMCP_IMAGE" ($operator.vmcpImage | default $operator.image)
      "TOOLHIVE_REGISTRY_API_IMAGE" .Values.registryAPI.image
      "TOOLHIVE_PROXY_HOST" $operator.proxyHost
      "TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS" (include "skep.secretNames" $operator.defaultImagePullSecrets)
      "TOOLHIVE_DEFAULT_REDIS_ADDR" $redis.addr
      "TOOLHIVE_DEFAULT_REDIS_SECRET_NAME" $redis.secret
      "TOOLHIVE_DEFAULT_REDIS_SECRET_KEY" (ternary $redis.key "" (not (empty $redis.secret)))
      "SKEP_CALLS_READER" (include "skep.callsReader" .)
      "OPERATOR_OPENSHIFT" (ternary "true" "" $openshift)
      "WATCH_NAMESPACE" (include "skep.namespaces" .)
      "TOOLHIVE_ENABLE_STORAGE_VERSION_MIGRATOR" (include "skep.migrates" .)
-}}
{{- $set := list -}}
{{- range $operator.env }}{{ $set = append $set .name }}{{ end -}}
{{- if not (has "POD_NAMESPACE" $set) }}
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- end }}
{{- range $name, $value := $values }}
{{- if and $value (not (has $name $set)) }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end -}}
