//! The cluster's interface as a machine of the sandbox plays it: TLS under an authority of its own, client certificates, and the few
//! answers that a client needs to list nodes and pods.
//!
//! Shapes are those of the Kubernetes API reference v1.36 (`/version`, `/api`, `/apis`, `/api/v1`, nodes, pods, tables of
//! meta.k8s.io/v1).

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::{Request, Response};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

use crate::sandbox::lock;
use crate::sandbox::server::Service;

/// Where the interface is on a machine's loopback.
pub(in crate::sandbox::machine) const PORT: u32 = 6443;

/// The cluster of one machine.
#[derive(Debug)]
pub(in crate::sandbox::machine) struct Kube {
    home: PathBuf,
    tls: Arc<ServerConfig>,
    service: Mutex<Option<Service>>,
}

impl Kube {
    /// Makes its authority and keys; returns it with the kubeconfig that k3s would write.
    pub(super) fn new(home: &Path) -> io::Result<(Kube, String)> {
        let authority = Party::authority()?;
        let server = authority.issue("k3s", ExtendedKeyUsagePurpose::ServerAuth)?;
        let client = authority.issue("system:admin", ExtendedKeyUsagePurpose::ClientAuth)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(authority.der.clone()).map_err(io::Error::other)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(io::Error::other)?;
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(
                vec![server.der.clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(server.key.serialize_der())),
            )
            .map_err(io::Error::other)?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let encode = |pem: String| STANDARD.encode(pem);
        let config = format!(
            "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {}\n    server: https://127.0.0.1:6443\n  name: default\n\
             contexts:\n- context:\n    cluster: default\n    user: default\n  name: default\ncurrent-context: default\nkind: Config\n\
             users:\n- name: default\n  user:\n    client-certificate-data: {}\n    client-key-data: {}\n",
            encode(authority.pem),
            encode(client.pem),
            encode(client.key.serialize_pem())
        );
        Ok((Kube { home: home.to_owned(), tls: Arc::new(tls), service: Mutex::default() }, config))
    }

    /// Where it answers on this computer; none while k3s does not run on the machine.
    pub(in crate::sandbox::machine) async fn address(&self) -> Option<SocketAddr> {
        if !self.home.join(".sandbox/k8s/k3s").exists() {
            return None;
        }
        if let Some(service) = lock(&self.service).as_ref() {
            return Some(service.address());
        }
        let home = self.home.clone();
        let acceptor = TlsAcceptor::from(Arc::clone(&self.tls));
        let service = Service::listen(None, Some(acceptor), move |request, _| {
            let answer = answer(&request, &home);
            async move { answer }
        })
        .await
        .ok()?;
        let mut known = lock(&self.service);
        Some(known.get_or_insert(service).address())
    }

    /// Ends it.
    pub(in crate::sandbox::machine) fn end(&self) {
        drop(lock(&self.service).take());
    }
}

/// A certificate with its key.
struct Party {
    params: CertificateParams,
    key: KeyPair,
    pem: String,
    der: CertificateDer<'static>,
}

impl Party {
    fn authority() -> io::Result<Party> {
        let mut params = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "k3s-server-ca@sandbox");
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let made = params.self_signed(&key).map_err(io::Error::other)?;
        Ok(Party { pem: made.pem(), der: made.der().clone(), params, key })
    }

    fn issue(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> io::Result<Party> {
        let hosts = vec!["localhost".to_owned(), "kubernetes".to_owned()];
        let mut params = CertificateParams::new(hosts).map_err(io::Error::other)?;
        params.subject_alt_names.push(SanType::IpAddress(std::net::Ipv4Addr::LOCALHOST.into()));
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let issuer = Issuer::from_params(&self.params, &self.key);
        let made = params.signed_by(&key, &issuer).map_err(io::Error::other)?;
        Ok(Party { pem: made.pem(), der: made.der().clone(), params, key })
    }
}

fn answer(request: &Request<hyper::body::Incoming>, home: &Path) -> Response<Body> {
    let path = request.uri().path();
    let table = request
        .headers()
        .get(hyper::header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("as=Table"));
    if matches!(path, "/readyz" | "/livez" | "/healthz") {
        return Response::new(Body::from("ok"));
    }
    let body = if request.method() == hyper::Method::GET { read(path, table, home) } else { None };
    let (code, body) = match body {
        Some(body) => (200, body),
        None => (404, status(404, "NotFound", "the sandbox does not play this")),
    };
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = hyper::StatusCode::from_u16(code).unwrap_or_default();
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
    response
}

fn read(path: &str, table: bool, home: &Path) -> Option<Value> {
    let node = node(home);
    let name = node["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Some(match path {
        "/version" => {
            json!({"major": "1", "minor": "36", "gitVersion": "v1.36.4+k3s1", "platform": "linux/amd64"})
        }
        "/api" => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        "/apis" => json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []}),
        "/api/v1" => {
            let kind = |name: &str, singular: &str, kind: &str, namespaced: bool, short: &str| {
                json!({"name": name, "singularName": singular, "kind": kind, "namespaced": namespaced,
                    "verbs": ["get", "list"], "shortNames": [short]})
            };
            json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                kind("nodes", "node", "Node", false, "no"),
                kind("pods", "pod", "Pod", true, "po"),
            ]})
        }
        "/api/v1/nodes" if table => rows(&[node]),
        "/api/v1/nodes" => list("NodeList", &[node]),
        "/api/v1/pods" | "/api/v1/namespaces/default/pods" | "/api/v1/namespaces/kube-system/pods" => {
            list("PodList", &[])
        }
        _ if path.strip_prefix("/api/v1/nodes/") == Some(name.as_str()) && table => rows(&[node]),
        _ if path.strip_prefix("/api/v1/nodes/") == Some(name.as_str()) => node,
        _ => return None,
    })
}

fn list(kind: &str, items: &[Value]) -> Value {
    json!({"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
}

fn rows(nodes: &[Value]) -> Value {
    let column =
        |name: &str| json!({"name": name, "type": "string", "format": "", "description": "", "priority": 0});
    let row = |node: &Value| {
        let version = &node["status"]["nodeInfo"]["kubeletVersion"];
        json!({"cells": [node["metadata"]["name"], "Ready", "control-plane", version], "object": {
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": node["metadata"]}})
    };
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "1"},
        "columnDefinitions": [column("Name"), column("Status"), column("Roles"), column("Version")],
        "rows": nodes.iter().map(row).collect::<Vec<_>>()})
}

/// The node as the set-up left it: its name from the configuration, its GPUs as far as they are schedulable.
fn node(home: &Path) -> Value {
    let text = |path: &str| std::fs::read_to_string(home.join(path)).unwrap_or_default();
    let config = text("etc/rancher/k3s/config.yaml");
    let name = config.lines().find_map(|line| line.strip_prefix("node-name: ")).unwrap_or("node").to_owned();
    let gpus = text(".sandbox/k8s/allocatable");
    let mut allocatable = json!({"cpu": "8", "memory": "65536000Ki", "pods": "110"});
    if !gpus.trim().is_empty() {
        allocatable["nvidia.com/gpu"] = gpus.trim().into();
    }
    json!({"kind": "Node", "apiVersion": "v1",
    "metadata": {"name": name, "uid": "5a1d0000-0000-4000-8000-000000000001", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "status": {
        "allocatable": allocatable,
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"kubeletVersion": "v1.36.4+k3s1"},
    }})
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason, "message": message})
}
