{{/* What the controller may do, for the whole cluster or for one namespace. */}}

{{/*
`list` and `watch` of Secrets is the right to read all of them: RBAC cannot say "their metadata". `delete` is used only on
a SealedSecret's own Secret, to make it again with another type, or where oldGcBehavior says so.
*/}}
{{- define "lacre.rules" -}}
rules:
  - apiGroups: [lacre.dev]
    resources: [encryptedsecrets]
    verbs: [list, watch]
  - apiGroups: [lacre.dev]
    resources: [encryptedsecrets/status]
    verbs: [patch]
  - apiGroups: [bitnami.com]
    resources: [sealedsecrets]
    verbs: [get, list, watch]
  - apiGroups: [bitnami.com]
    resources: [sealedsecrets/status]
    verbs: [update]
  - apiGroups: [""]
    resources: [secrets]
    verbs: [get, list, watch, create, update, patch, delete]
  - apiGroups: ["", events.k8s.io]
    resources: [events]
    verbs: [create, patch]
{{- end -}}

{{/* Kind, name and labels of a role or binding: "context", "kind", "name", "namespace". */}}
{{- define "lacre.rbac" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{- include "lacre.labels" (dict "context" .context "extra" (list .context.Values.rbac.labels)) | nindent 4 }}
  {{- include "lacre.annotations" (dict "context" .context) }}
{{- end -}}

{{/* A binding of the controller's service account: "context", "kind" (of the role), "role", and as above. */}}
{{- define "lacre.binding" -}}
{{ include "lacre.rbac" (dict "context" .context "kind" (printf "%sBinding" .kind) "name" .name "namespace" .namespace) }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .role }}
subjects:
  {{- if .subjects }}
  {{- include "lacre.render" (dict "value" .subjects "context" .context) | nindent 2 }}
  {{- else }}
  - kind: ServiceAccount
    name: {{ include "lacre.serviceAccountName" .context }}
    namespace: {{ include "lacre.namespace" .context }}
  {{- end }}
{{- end -}}
