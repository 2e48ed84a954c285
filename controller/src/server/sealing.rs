//! What `kubeseal` and `lacre` ask for: the certificate, whether an object opens, and the object sealed anew.
//!
//! Any user of a cluster may ask, and may put anybody's ciphertext into a question. So an answer is one bit or new
//! ciphertext, and never depends on a template: a template could ask about a value bit by bit. Scope, namespace and name
//! are those of the object itself. Sealing anew changes ciphertext and nothing else.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::Client as Cluster;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::sync::Semaphore;

use super::connection::Client;
use super::limit::{RateLimit, Verdict};
use crate::args::sealed::SealedArgs;
use crate::metrics::Metrics;
use crate::sealed::keys::SealingKeys;
use crate::sealed::rewrap::{self, Refusal};

/// The certificate that is sealed for.
pub const CERTIFICATE: &str = "/v1/cert.pem";

/// Whether an object opens.
pub const VERIFY: &str = "/v1/verify";

/// An object sealed anew.
pub const ROTATE: &str = "/v1/rotate";

/// Most bytes of an object. The API server takes no larger one.
const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Objects that are opened at a time. The processors are for those that the cluster waits for.
const AT_A_TIME: usize = 2;

/// Longest name of a client that is told from others.
const CLIENT_CHARS_MAX: usize = 64;

/// What the answers need.
pub struct Sealing {
    keys: Arc<SealingKeys>,
    metrics: Arc<Metrics>,
    cluster: Cluster,
    verify_limit: RateLimit,
    rotate_limit: RateLimit,
    require_token: bool,
    proxies: Vec<IpAddr>,
    read_timeout: Duration,
    write_timeout: Duration,
    accept_v1: bool,
    turns: Arc<Semaphore>,
}

impl Sealing {
    /// The answers as the flags want them.
    pub fn new(args: &SealedArgs, cluster: Cluster, keys: Arc<SealingKeys>, metrics: Arc<Metrics>) -> Self {
        let limit = || RateLimit::new(args.rate_limit, args.rate_limit_burst);
        Self {
            keys,
            metrics,
            cluster,
            verify_limit: limit(),
            rotate_limit: limit(),
            require_token: args.require_token,
            proxies: args.proxy_address.clone(),
            read_timeout: args.read_timeout,
            write_timeout: args.write_timeout,
            accept_v1: args.accept_deprecated_v1_data,
            turns: Arc::new(Semaphore::new(AT_A_TIME)),
        }
    }

    /// Refuses whoever asks too often, or without the token that is asked for.
    async fn admit(&self, client: IpAddr, headers: &HeaderMap) -> Result<(), Response> {
        if !self.require_token || self.proxies.contains(&client) {
            return Ok(());
        }
        let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some(token) = token.and_then(|value| value.strip_prefix("Bearer ")) else {
            return Err(unauthorized());
        };
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { metadata: ObjectMeta::default(), spec, status: None };
        let reviews: Api<TokenReview> = Api::all(self.cluster.clone());
        match reviews.create(&PostParams::default(), &review).await {
            Ok(answer) if answer.status.as_ref().and_then(|status| status.authenticated) == Some(true) => {
                Ok(())
            }
            Ok(_) => Err(unauthorized()),
            Err(_) => {
                tracing::warn!(
                    "a bearer token cannot be reviewed: the controller needs `create` on tokenreviews"
                );
                Err(text(StatusCode::SERVICE_UNAVAILABLE, "the token cannot be reviewed\n"))
            }
        }
    }

    /// The body, if the client may ask and sends one that is not too large.
    async fn question(
        &self,
        limit: &RateLimit,
        client: Client,
        request: Request,
    ) -> Result<(Verdict, Bytes), Response> {
        let verdict = limit.judge(&name_of(client.0, request.headers(), &self.proxies), Instant::now());
        if verdict.retry_after_seconds.is_some() {
            return Err(with_limits(verdict, text(StatusCode::TOO_MANY_REQUESTS, "limit exceeded\n")));
        }
        self.admit(client.0, request.headers()).await.map_err(|refused| with_limits(verdict, refused))?;
        let body = to_bytes(request.into_body(), BODY_BYTES_MAX);
        let body = match tokio::time::timeout(self.read_timeout, body).await {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(_)) => {
                Err(text(StatusCode::PAYLOAD_TOO_LARGE, "the body cannot be read or is above 2 MiB\n"))
            }
            Err(_) => Err(text(StatusCode::REQUEST_TIMEOUT, "the body did not come\n")),
        };
        Ok((verdict, body.map_err(|refused| with_limits(verdict, refused))?))
    }

    /// Does `work` where it keeps nobody else from being served, and not for longer than an answer may take.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SealingKeys, Instant) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Response> {
        let deadline = Instant::now() + self.write_timeout;
        let busy = || text(StatusCode::SERVICE_UNAVAILABLE, "busy: ask again later\n");
        let (keys, turns) = (self.keys.clone(), self.turns.clone());
        let worked = async move {
            let turn = turns.acquire_owned().await.ok()?;
            // The turn ends with the work, not with whoever waits for it.
            let work = move || (work(&keys, deadline), drop(turn)).0;
            tokio::task::spawn_blocking(work).await.ok()
        };
        match tokio::time::timeout(self.write_timeout, worked).await {
            Ok(Some(answer)) => answer.map_err(refused),
            Ok(None) => Err(StatusCode::INTERNAL_SERVER_ERROR.into_response()),
            Err(_) => Err(busy()),
        }
    }
}

/// `/v1/cert.pem`
pub async fn certificate(State(sealing): State<Arc<Sealing>>) -> Response {
    let set = sealing.keys.snapshot();
    match set.newest().and_then(|key| key.certificate.as_ref()) {
        Some(certificate) => {
            ([(header::CONTENT_TYPE, "application/x-pem-file")], certificate.pem().to_owned()).into_response()
        }
        None => text(StatusCode::INTERNAL_SERVER_ERROR, "cannot get certificate\n"),
    }
}

/// `/v1/verify`
pub async fn verify(
    State(sealing): State<Arc<Sealing>>,
    ConnectInfo(client): ConnectInfo<Client>,
    request: Request,
) -> Response {
    let (verdict, body) = match sealing.question(&sealing.verify_limit, client, request).await {
        Ok(question) => question,
        Err(refused) => return refused,
    };
    let accept_v1 = sealing.accept_v1;
    let answer = sealing.work(move |keys, deadline| rewrap::verify(&body, keys, accept_v1, deadline)).await;
    with_limits(verdict, answer.map_or_else(|refused| refused, |()| StatusCode::OK.into_response()))
}

/// `/v1/rotate`
pub async fn rotate(
    State(sealing): State<Arc<Sealing>>,
    ConnectInfo(client): ConnectInfo<Client>,
    request: Request,
) -> Response {
    let (verdict, body) = match sealing.question(&sealing.rotate_limit, client, request).await {
        Ok(question) => question,
        Err(refused) => return refused,
    };
    let answer = sealing.work(move |keys, deadline| rewrap::rewrap(&body, keys, deadline)).await;
    let json = |object: String| ([(header::CONTENT_TYPE, "application/json")], object).into_response();
    with_limits(verdict, answer.map_or_else(|refused| refused, json))
}

/// Counts an answer and how long it took.
pub async fn counted(State(sealing): State<Arc<Sealing>>, request: Request, next: Next) -> Response {
    let path = [CERTIFICATE, VERIFY, ROTATE].into_iter().find(|path| request.uri().path() == *path);
    let (method, began) = (request.method().clone(), Instant::now());
    let answer = next.run(request).await;
    if let Some(path) = path {
        let code = answer.status().as_u16();
        sealing.metrics.sealed.answered(path, method.as_str(), code, began.elapsed());
    }
    answer
}

/// Who asks. Through the API server's proxy, that is who the proxy says: it writes the last entry. What stands before it,
/// the client wrote itself. Where it is known which addresses are `proxies`, nobody else is believed.
fn name_of(client: IpAddr, headers: &HeaderMap, proxies: &[IpAddr]) -> String {
    if !proxies.is_empty() && !proxies.contains(&client) {
        return client.to_string();
    }
    let forwarded = headers.get_all("x-forwarded-for").iter().next_back();
    let forwarded = forwarded.and_then(|value| value.to_str().ok()?.rsplit(',').next());
    let last = forwarded.map(str::trim).filter(|last| !last.is_empty());
    last.map_or_else(|| client.to_string(), |last| last.chars().take(CLIENT_CHARS_MAX).collect())
}

fn refused(refusal: Refusal) -> Response {
    match refusal {
        Refusal::Busy => text(StatusCode::SERVICE_UNAVAILABLE, "it takes too long: ask for fewer items\n"),
        Refusal::NoKey => text(StatusCode::SERVICE_UNAVAILABLE, "there is no sealing key yet\n"),
        Refusal::NotOpened(what) => text(StatusCode::CONFLICT, format!("{what}\n")),
        // As Sealed Secrets answers what is no SealedSecret.
        Refusal::Unreadable(what) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{what}\n")),
    }
}

fn unauthorized() -> Response {
    let mut answer = text(StatusCode::UNAUTHORIZED, "a bearer token of this cluster is needed\n");
    answer.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    answer
}

fn text(status: StatusCode, body: impl Into<Body>) -> Response {
    let headers =
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (status, headers, body.into()).into_response()
}

fn with_limits(verdict: Verdict, mut answer: Response) -> Response {
    let headers = [
        ("x-ratelimit-limit", Some(u64::from(verdict.limit))),
        ("x-ratelimit-remaining", Some(u64::from(verdict.remaining))),
        ("x-ratelimit-reset", Some(verdict.reset_seconds)),
        ("retry-after", verdict.retry_after_seconds),
    ];
    for (name, value) in headers {
        if let Some(value) = value {
            answer.headers_mut().insert(HeaderName::from_static(name), value.into());
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(forwarded: &[&str]) -> String {
        name_with(&[], forwarded)
    }

    fn name_with(proxies: &[&str], forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        let proxies: Vec<_> = proxies.iter().map(|address| address.parse().unwrap()).collect();
        name_of("10.0.0.1".parse().unwrap(), &headers, &proxies)
    }

    #[test]
    fn a_client_is_who_the_last_proxy_says() {
        assert_eq!(name(&[]), "10.0.0.1");
        assert_eq!(name(&["1.1.1.1, 2.2.2.2"]), "2.2.2.2");
        assert_eq!(name(&["9.9.9.9", "1.1.1.1,3.3.3.3 "]), "3.3.3.3");
        assert_eq!(name(&["1.1.1.1, "]), "10.0.0.1");
        assert_eq!(name(&[&"x".repeat(1000)]).len(), CLIENT_CHARS_MAX);
    }

    #[test]
    fn nobody_but_a_known_proxy_names_another_client() {
        let forwarded = ["1.1.1.1"];
        assert_eq!(name_with(&["10.0.0.2", "10.0.0.1"], &forwarded), "1.1.1.1");
        assert_eq!(name_with(&["10.0.0.2"], &forwarded), "10.0.0.1");
    }
}
