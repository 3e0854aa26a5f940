{{- define "sglang-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "sglang-operator.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := include "sglang-operator.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "sglang-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "sglang-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sglang-operator.labels" -}}
{{ include "sglang-operator.selectorLabels" . }}
app.kubernetes.io/component: operator
app.kubernetes.io/part-of: sglang-operator
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* The chart's labels and `more` ones, which cannot replace them. Two keys alike are no YAML. */ -}}
{{- define "sglang-operator.labelsAnd" -}}
{{- merge (include "sglang-operator.labels" .root | fromYaml) (.more | default dict) | toYaml }}
{{- end }}

{{- define "sglang-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "sglang-operator.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "sglang-operator.image" -}}
{{- include "sglang-operator.reference" (dict "root" . "image" .Values.image) }}
{{- end }}

{{- define "sglang-operator.reference" -}}
{{- if .image.digest }}
{{- printf "%s@%s" .image.repository .image.digest }}
{{- else }}
{{- printf "%s:%s" .image.repository (default .root.Chart.AppVersion .image.tag) }}
{{- end }}
{{- end }}

{{- /* Empty where no PodMonitor is to be made. */ -}}
{{- define "sglang-operator.podMonitors" -}}
{{- if and .Values.metrics.podMonitor.enabled (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1") -}}
true
{{- end }}
{{- end }}

{{- /* Operator and engines name the port alike. */ -}}
{{- define "sglang-operator.metricsEndpoint" -}}
- port: {{ .port }}
  path: /metrics
  {{- with .root.Values.metrics.podMonitor.interval }}
  interval: {{ . }}
  {{- end }}
{{- end }}

{{- /* The rights the operator needs where SGLangClusters live. It reads no Secret. */ -}}
{{- define "sglang-operator.rules" -}}
- apiGroups: [sglang.dev]
  resources: [sglangclusters]
  verbs: [get, list, watch]
- apiGroups: [sglang.dev]
  resources: [sglangclusters/status]
  verbs: [patch]
# Revisions come and go: their Deployments and ConfigMaps are deleted. All else goes with its owner.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch]
# Routers can be switched off. The Role that they get is to see pods; nobody can give rights that he lacks himself.
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch, delete]
# The agents' token is made, and never read.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
# Why an engine does not start is read from its pods and their events. Before a scale-in, pods are marked.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [list]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
