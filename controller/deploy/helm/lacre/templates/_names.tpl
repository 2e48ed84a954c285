{{/* What objects are called, and the labels and annotations that all of them carry. */}}

{{- define "lacre.name" -}}
{{- .Values.nameOverride | default "sealed-secrets" | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* kubeseal looks for sealed-secrets-controller, so that is what it is called unless somebody says otherwise. */}}
{{- define "lacre.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if not .Values.nameOverride -}}
sealed-secrets-controller
{{- else if contains .Values.nameOverride .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "lacre.namespace" -}}
{{- default .Release.Namespace .Values.namespace -}}
{{- end -}}

{{- define "lacre.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "lacre.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* A value that may hold templates, as YAML: "value", "context". */}}
{{- define "lacre.render" -}}
{{- if kindIs "string" .value -}}
{{- tpl .value .context -}}
{{- else -}}
{{- tpl (toYaml .value) .context -}}
{{- end -}}
{{- end -}}

{{/* By what the Deployment, its Services and its policies know the pods. It cannot be changed once there is a Deployment. */}}
{{- define "lacre.matchLabels" -}}
app.kubernetes.io/name: {{ include "lacre.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Several maps as one, the last one winning, since YAML knows no key twice: "maps", "context". */}}
{{- define "lacre.merged" -}}
{{- $context := .context -}}
{{- $merged := dict -}}
{{- range .maps -}}
{{- if . -}}
{{- $merged = mergeOverwrite $merged (include "lacre.render" (dict "value" . "context" $context) | fromYaml) -}}
{{- end -}}
{{- end -}}
{{- if $merged -}}{{- toYaml $merged -}}{{- end -}}
{{- end -}}

{{/* Labels of an object: "context", "extra" (a list of maps). */}}
{{- define "lacre.labels" -}}
{{- $own := dict
  "helm.sh/chart" (printf "%s-%s" .context.Chart.Name .context.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/managed-by" .context.Release.Service
  "app.kubernetes.io/version" .context.Chart.AppVersion
  "app.kubernetes.io/part-of" "lacre" -}}
{{- $match := include "lacre.matchLabels" .context | fromYaml -}}
{{- include "lacre.merged" (dict "context" .context "maps" (concat (list $own .context.Values.commonLabels) (.extra | default list) (list $match))) -}}
{{- end -}}

{{/* `annotations:` for the metadata of an object, on a line of its own, or nothing: "context", "extra" (a list of maps). */}}
{{- define "lacre.annotations" -}}
{{- with include "lacre.merged" (dict "context" .context "maps" (concat (list .context.Values.commonAnnotations) (.extra | default list))) }}
  annotations: {{- . | nindent 4 }}
{{- end -}}
{{- end -}}
