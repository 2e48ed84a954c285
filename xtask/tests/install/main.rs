//! What the controller is installed with, judged by the programs that read it: helm, kubectl, a real API server, Argo
//! CD's engine and promtool.

mod argocd;
mod chart;
mod cluster;
mod monitoring;
mod support;
