{{/* The pod. Its defaults fit the restricted Pod Security Standard. */}}

{{- define "lacre.image" -}}
{{- $image := .Values.image.repository -}}
{{- with .Values.image.registry }}{{- $image = printf "%s/%s" . $image }}{{- end -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $image .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* `KIND: …`, the custom one where the other is not enabled, or nothing: "context", "name", "probe", "custom", "path". */}}
{{- define "lacre.probe" -}}
{{- if .probe.enabled }}
{{ .name }}:
  httpGet:
    path: {{ .path }}
    port: http
  {{- omit .probe "enabled" | toYaml | nindent 2 }}
{{- else if .custom }}
{{ .name }}: {{- include "lacre.render" (dict "value" .custom "context" .context) | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A port of the container: "name", "port", "host", "hostNetwork". */}}
{{- define "lacre.port" -}}
- name: {{ .name }}
  containerPort: {{ .port }}
  protocol: TCP
  {{- if .hostNetwork }}
  hostPort: {{ .port }}
  {{- else if ne (toString .host) "" }}
  hostPort: {{ .host }}
  {{- end }}
{{- end -}}

{{- define "lacre.container" -}}
name: controller
image: {{ include "lacre.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- with .Values.command }}
command: {{- include "lacre.render" (dict "value" . "context" $) | nindent 2 }}
{{- end }}
args:
  {{- if .Values.args }}
  {{- include "lacre.render" (dict "value" .Values.args "context" $) | nindent 2 }}
  {{- else }}
  {{- include "lacre.arguments" . | nindent 2 }}
  {{- end }}
env:
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  - name: POD_NAMESPACE
    valueFrom:
      fieldRef:
        fieldPath: metadata.namespace
  {{- with .Values.extraEnv }}
  {{- include "lacre.render" (dict "value" . "context" $) | nindent 2 }}
  {{- end }}
ports:
  {{- include "lacre.port" (dict "name" "http" "port" .Values.containerPorts.http "host" .Values.hostPorts.http "hostNetwork" .Values.hostNetwork) | nindent 2 }}
  {{- include "lacre.port" (dict "name" "metrics" "port" .Values.containerPorts.metrics "host" .Values.hostPorts.metrics "hostNetwork" .Values.hostNetwork) | nindent 2 }}
{{- include "lacre.probe" (dict "context" . "name" "startupProbe" "probe" .Values.startupProbe "custom" .Values.customStartupProbe "path" "/healthz") }}
{{- include "lacre.probe" (dict "context" . "name" "livenessProbe" "probe" .Values.livenessProbe "custom" .Values.customLivenessProbe "path" "/healthz") }}
{{- include "lacre.probe" (dict "context" . "name" "readinessProbe" "probe" .Values.readinessProbe "custom" .Values.customReadinessProbe "path" "/readyz") }}
{{- with .Values.resources }}
resources: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .Values.containerSecurityContext.enabled }}
securityContext: {{- omit .Values.containerSecurityContext "enabled" | toYaml | nindent 2 }}
{{- end }}
{{- with .Values.additionalVolumeMounts }}
volumeMounts: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "lacre.pod" -}}
serviceAccountName: {{ include "lacre.serviceAccountName" . }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- if .Values.podSecurityContext.enabled }}
securityContext: {{- omit .Values.podSecurityContext "enabled" | toYaml | nindent 2 }}
{{- end }}
{{- if kindIs "bool" .Values.hostUsers }}
hostUsers: {{ .Values.hostUsers }}
{{- end }}
{{- if .Values.hostNetwork }}
hostNetwork: true
{{- end }}
{{- range $field := list "affinity" "nodeSelector" "tolerations" "topologySpreadConstraints" }}
{{- with index $.Values $field }}
{{ $field }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- range $field := list "priorityClassName" "runtimeClassName" "dnsPolicy" }}
{{- with index $.Values $field }}
{{ $field }}: {{ . | quote }}
{{- end }}
{{- end }}
containers:
  - {{ include "lacre.container" . | nindent 4 | trim }}
{{- with .Values.additionalVolumes }}
volumes: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
