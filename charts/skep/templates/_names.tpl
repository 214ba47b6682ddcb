{{- define "skep.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "skep.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "skep.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "skep.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "skep.selector" -}}
app.kubernetes.io/name: {{ include "skep.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "skep.labels" -}}
{{ include "skep.selector" . }}
app.kubernetes.io/component: operator
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end -}}

{{- /* Other labels than those of the operator, whose Deployment selects by name and instance. */ -}}
{{- define "skep.consoleSelector" -}}
app.kubernetes.io/name: {{ printf "%s-console" (include "skep.name" .) | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "skep.consoleLabels" -}}
{{ include "skep.consoleSelector" . }}
app.kubernetes.io/component: console
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end -}}

{{- define "skep.serviceAccount" -}}
{{- $account := .Values.operator.serviceAccount -}}
{{- if not (or $account.create $account.name) -}}
{{- /* Otherwise every pod of the namespace without an account of its own would have the operator's permissions. */ -}}
{{- fail "operator.serviceAccount.create is false: name an existing account in operator.serviceAccount.name" -}}
{{- end -}}
{{- $account.name | default (include "skep.fullname" .) -}}
{{- end -}}

{{- /* Whose roles these are. */ -}}
{{- define "skep.subjects" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "skep.serviceAccount" . | quote }}
    namespace: {{ .Release.Namespace | quote }}
{{- end -}}
