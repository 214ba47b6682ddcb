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
app.kubernetes.io/name: {{ include "skep.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "skep.labels" -}}
{{ include "skep.selector" . }}
app.kubernetes.io/component: operator
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "skep.serviceAccount" -}}
{{- $account := .Values.operator.serviceAccount -}}
{{- $account.name | default (ternary (include "skep.fullname" .) "default" $account.create) -}}
{{- end -}}

{{- /* Whose roles these are. */ -}}
{{- define "skep.subjects" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "skep.serviceAccount" . }}
    namespace: {{ .Release.Namespace }}
{{- end -}}
