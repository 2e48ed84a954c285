{{/* The controller's command line. */}}

{{/* `name=value` pairs of a map. */}}
{{- define "lacre.pairs" -}}
{{- $pairs := list -}}
{{- range $name, $value := . -}}
{{- if or (contains "," $value) (contains "=" $name) -}}
{{- fail (printf "privateKeyAnnotations and privateKeyLabels cannot hold a comma, nor a name an equals sign: %s" $name) -}}
{{- end -}}
{{- $pairs = append $pairs (printf "%s=%s" $name $value) -}}
{{- end -}}
{{- join "," $pairs -}}
{{- end -}}

{{- define "lacre.arguments" -}}
{{- $values := .Values -}}
{{- $arguments := list
  "--leader-elect"
  (printf "--listen-addr=:%v" $values.containerPorts.http)
  (printf "--listen-metrics-addr=:%v" $values.containerPorts.metrics)
  (printf "--key-prefix=%s" $values.secretName)
  (printf "--update-status=%t" $values.updateStatus)
  (printf "--skip-recreate=%t" $values.skipRecreate)
  (printf "--log-info-stdout=%t" $values.logInfoStdout)
  (printf "--accept-deprecated-v1-data=%t" $values.acceptDeprecatedV1Data)
  (printf "--old-gc-behavior=%t" $values.oldGcBehavior)
  (printf "--watch-for-secrets=%t" $values.watchForSecrets)
  (printf "--metrics-omit-secret-labels=%t" $values.metrics.omitSecretLabels)
  (printf "--template-missing-key=%s" $values.templateMissingKey)
  (printf "--drift=%s" $values.drift) -}}
{{- $given := dict
  "key-renew-period" $values.keyrenewperiod
  "key-ttl" $values.keyttl
  "key-cutoff-time" $values.keycutofftime
  "key-size" $values.keySize
  "key-order-priority" $values.keyOrderPriority
  "my-cn" $values.myCN
  "rate-limit" $values.rateLimit
  "rate-limit-burst" $values.rateLimitBurst
  "log-level" $values.logLevel
  "log-format" $values.logFormat
  "max-unseal-retries" $values.maxRetries
  "kubeclient-qps" $values.kubeClientQPS
  "kubeclient-burst" $values.kubeClientBurst
  "label-selector" $values.labelSelector
  "cluster-name" $values.clusterName
  "max-scope" $values.maxScope
  "aws-kms-endpoint" $values.awsKmsEndpoint
  "concurrency" $values.concurrency
  "resync" $values.resync
  "retry-delay" $values.retryDelay
  "retry-delay-max" $values.retryDelayMax
  "additional-namespaces" (join "," $values.additionalNamespaces)
  "privatekey-annotations" (include "lacre.pairs" $values.privateKeyAnnotations)
  "privatekey-labels" (include "lacre.pairs" $values.privateKeyLabels) -}}
{{- range $flag, $value := $given -}}
{{- if ne (toString $value) "" -}}
{{- /* Numbers of values files arrive as floating point: 1000000 must not become 1e+06. */ -}}
{{- $text := ternary (toString $value | trimSuffix ".0") (toString $value) (kindIs "float64" $value) -}}
{{- if and (kindIs "float64" $value) (eq (float64 (int64 $value)) $value) -}}
{{- $text = int64 $value | toString -}}
{{- end -}}
{{- $arguments = append $arguments (printf "--%s=%s" $flag $text) -}}
{{- end -}}
{{- end -}}
{{- $switches := dict
  "allow-own-namespace" $values.allowOwnNamespace
  "bring-your-own-keys" $values.bringYourOwnKeys
  "enable-pgp" $values.enablePgp
  "require-token" $values.requireToken
  "restrict-sealed-secrets" $values.restrictSealedSecrets -}}
{{- range $flag, $on := $switches -}}
{{- if $on -}}
{{- $arguments = append $arguments (printf "--%s" $flag) -}}
{{- end -}}
{{- end -}}
{{- $repeated := dict
  "allow-type" $values.allowTypes
  "allow-template-key" $values.allowTemplateKeys
  "ambient-cloud-namespace" $values.ambientCloudNamespaces
  "proxy-address" $values.proxyAddresses -}}
{{- range $flag, $list := $repeated -}}
{{- range $list -}}
{{- $arguments = append $arguments (printf "--%s=%s" $flag .) -}}
{{- end -}}
{{- end -}}
{{- if and $values.rbac.namespacedRoles (not $values.additionalNamespaces) -}}
{{- $arguments = append $arguments "--all-namespaces=false" -}}
{{- end -}}
{{- toYaml (concat $arguments $values.extraArgs) -}}
{{- end -}}
