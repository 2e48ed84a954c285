//! The side that asks: a key service as an identity, and as a way to wrap for a recipient.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::ServiceAddress;
use super::message::{
    DECRYPT, DecryptRequest, DecryptResponse, ENCRYPT, EncryptRequest, EncryptResponse, Key,
    MESSAGE_BYTES_MAX,
};
use crate::recipient::remote::{Door, broken, deepest, quote, unreachable};
use crate::recipient::{
    Effort, Identity, Recipient, RecipientId, UnwrapError, UnwrapFailure, WRAPPED_KEY_BYTES_MAX, WrapError,
    WrappedKey, check_to_wrap, is_key_length,
};
use crate::secret::SecretBytes;

/// How much more time than it has the service is told: ours, which is told of in our words, comes first.
const GRACE: Duration = Duration::from_secs(1);

/// How long making a connection may take, however long an answer may.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// A key service to ask. Clones share the connection, which is made by the first call.
#[derive(Clone)]
pub struct KeyService(Arc<Shared>);

struct Shared {
    address: ServiceAddress,
    deadline: Duration,
    door: Door,
    channel: Arc<Mutex<Option<Channel>>>,
    /// Why it was not reached, once it was not: it is not waited for again.
    lost: Mutex<Option<UnwrapError>>,
}

impl KeyService {
    /// The service at `address`, which has `deadline` for each call.
    pub fn new(address: ServiceAddress, deadline: Duration) -> Self {
        let door = Door::new(&format!("the key service {address}"), deadline);
        Self(Arc::new(Shared { address, deadline, door, channel: Arc::default(), lost: Mutex::default() }))
    }

    /// Whether it was called and not reached.
    pub fn is_lost(&self) -> bool {
        lock(&self.0.lost).is_some()
    }

    fn wrap(&self, id: &RecipientId, key: &SecretBytes) -> Result<String, UnwrapError> {
        let Some(named) = Key::of(id) else {
            return Err(self.broken("cannot be told of such a key; one in Azure needs its version"));
        };
        let request = EncryptRequest { key: Some(named), plaintext: key.expose_secret().to_vec() };
        let answer: EncryptResponse = self.call(ENCRYPT, request)?;
        let enc = String::from_utf8(answer.ciphertext).map_err(|_| self.broken("answered with no text"))?;
        if !has_form_of(id, &enc) {
            return Err(self.broken("answered with something else than a wrapped key"));
        }
        Ok(enc)
    }

    fn open(&self, named: Key, enc: &str) -> Result<SecretBytes, UnwrapError> {
        let request = DecryptRequest { key: Some(named), ciphertext: enc.as_bytes().to_vec() };
        let mut answer: DecryptResponse = self.call(DECRYPT, request)?;
        let key = SecretBytes::new(std::mem::take(&mut answer.plaintext));
        if !is_key_length(key.len()) {
            return Err(self.broken(&format!("answered with {} bytes, which is no data key", key.len())));
        }
        Ok(key)
    }

    /// Calls a method. What ends without an answer of the service is remembered.
    fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, UnwrapError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        if let Some(lost) = lock(&self.0.lost).clone() {
            return Err(lost);
        }
        let (address, deadline) = (self.0.address.clone(), self.0.deadline);
        let channel = Arc::clone(&self.0.channel);
        let work = async move { Ok(unary(channel, address, deadline, path, request).await) };
        match self.0.door.call(work) {
            Err(late) => Err(self.lost(late)),
            Ok(answer) => answer.map_err(|status| self.classify(&status)),
        }
    }

    fn lost(&self, error: UnwrapError) -> UnwrapError {
        lock(&self.0.lost).get_or_insert(error).clone()
    }

    /// Tells what the service said from what kept it from saying anything: only the latter has a cause of its own.
    fn classify(&self, status: &Status) -> UnwrapError {
        if let Some(cause) = status.source() {
            let reason = format!("the key service {} was not reached: {}", self.0.address, deepest(cause));
            return self.lost(unreachable(reason));
        }
        let kind = match status.code() {
            Code::DataLoss | Code::InvalidArgument => UnwrapFailure::Broken,
            Code::ResourceExhausted => UnwrapFailure::Throttled,
            Code::Aborted | Code::Cancelled | Code::DeadlineExceeded | Code::Internal | Code::Unavailable => {
                UnwrapFailure::Unreachable
            }
            _ => UnwrapFailure::Denied,
        };
        let said = quote(status.message());
        let said = if said.is_empty() { status.code().description().to_owned() } else { said };
        UnwrapError::new(kind, format!("the key service {} answered: {said}", self.0.address))
    }

    fn broken(&self, what: &str) -> UnwrapError {
        broken(format!("the key service {} {what}", self.0.address))
    }
}

impl fmt::Debug for KeyService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeyService({})", self.0.address)
    }
}

impl Identity for KeyService {
    fn public(&self) -> String {
        format!("key service {}", self.0.address)
    }

    fn effort(&self) -> Effort {
        Effort::Served
    }

    /// The service alone knows what it holds, so that each entry is put to it.
    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
        let named = Key::of(&wrapped.recipient)?;
        Some(self.open(named, &wrapped.enc))
    }
}

/// A recipient for whom a key service wraps.
pub struct ServedRecipient {
    id: RecipientId,
    service: KeyService,
}

impl ServedRecipient {
    /// Calls the service when it wraps, and not before.
    pub fn new(id: RecipientId, service: KeyService) -> Self {
        Self { id, service }
    }
}

impl Recipient for ServedRecipient {
    fn id(&self) -> RecipientId {
        self.id.clone()
    }

    fn wrap(&self, key: &SecretBytes) -> Result<String, WrapError> {
        let error = |reason: String| WrapError { recipient: self.id(), reason };
        check_to_wrap(key).map_err(error)?;
        self.service.wrap(&self.id, key).map_err(|failure| error(failure.reason))
    }
}

async fn unary<Q, A>(
    channel: Arc<Mutex<Option<Channel>>>,
    address: ServiceAddress,
    deadline: Duration,
    path: &'static str,
    request: Q,
) -> Result<A, Status>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let channel = connection(&channel, &address, deadline)?;
    let mut grpc = Grpc::new(channel)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    grpc.ready().await.map_err(|error| Status::from_error(Box::new(error)))?;
    let mut request = Request::new(request);
    request.set_timeout(deadline.saturating_add(GRACE));
    let codec = ProstCodec::<Q, A>::default();
    Ok(grpc.unary(request, PathAndQuery::from_static(path), codec).await?.into_inner())
}

/// The one connection, made again by tonic when it broke. Needs a runtime around it, so not made earlier.
fn connection(
    kept: &Mutex<Option<Channel>>,
    address: &ServiceAddress,
    deadline: Duration,
) -> Result<Channel, Status> {
    let mut kept = lock(kept);
    if let Some(channel) = &*kept {
        return Ok(channel.clone());
    }
    let target = match address {
        ServiceAddress::Tcp(address) => format!("http://{address}"),
        ServiceAddress::Unix(path) => format!("unix://{}", path.display()),
    };
    let endpoint = Endpoint::from_shared(target).map_err(|error| Status::from_error(Box::new(error)))?;
    let channel = endpoint.connect_timeout(deadline.min(CONNECT_DEADLINE)).connect_lazy();
    Ok(kept.insert(channel).clone())
}

/// Whether `enc` can be a wrapped key of that kind at all. More is known only to who can unwrap it.
fn has_form_of(id: &RecipientId, enc: &str) -> bool {
    let begins = match id {
        RecipientId::Age(_) => "-----BEGIN AGE ENCRYPTED FILE-----",
        RecipientId::Pgp(_) => "-----BEGIN PGP MESSAGE-----",
        RecipientId::Vault(_) => "vault:v",
        _ => "",
    };
    !enc.trim().is_empty() && enc.len() <= WRAPPED_KEY_BYTES_MAX && enc.starts_with(begins)
}

/// A lock whose holder panicked still guards plain data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use super::super::server::tests::Served;
    use super::super::{Keeper, Limits};
    use super::*;

    const LIMITS: Limits = Limits { requests_max: 2, deadline: Duration::from_secs(20) };
    const ARMOR: &str = "-----BEGIN AGE ENCRYPTED FILE-----\n";

    /// Answers what it was made to, and counts how many it is asked by at a time.
    struct Says {
        enc: &'static str,
        key: Result<usize, UnwrapFailure>,
        takes: Duration,
        running: AtomicUsize,
        most: AtomicUsize,
    }

    impl Says {
        fn new(enc: &'static str, key: Result<usize, UnwrapFailure>) -> Self {
            Self { enc, key, takes: Duration::ZERO, running: AtomicUsize::new(0), most: AtomicUsize::new(0) }
        }
    }

    impl Keeper for Says {
        fn wrap(&self, _: &RecipientId, _: &SecretBytes) -> Result<String, UnwrapError> {
            Ok(self.enc.to_owned())
        }

        fn unwrap(&self, _: &WrappedKey) -> Result<SecretBytes, UnwrapError> {
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(running, Ordering::SeqCst);
            std::thread::sleep(self.takes);
            self.running.fetch_sub(1, Ordering::SeqCst);
            match self.key {
                Ok(length) => Ok(SecretBytes::new(vec![7; length])),
                Err(failure) => Err(UnwrapError::new(failure, "not\u{1b} today")),
            }
        }
    }

    fn entry(recipient: &str, enc: &str) -> WrappedKey {
        let recipient = RecipientId::Age(recipient.to_owned());
        WrappedKey { recipient, enc: enc.to_owned(), created_at: None }
    }

    fn service(address: &str, deadline: Duration) -> KeyService {
        KeyService::new(ServiceAddress::parse(address).unwrap(), deadline)
    }

    fn asked(address: &str) -> Result<SecretBytes, UnwrapError> {
        service(address, Duration::from_secs(20)).unwrap(&entry("age1x", ARMOR)).unwrap()
    }

    /// Answers every connection with `answer`, or never when it is empty.
    fn answering(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if !answer.is_empty() {
                    let _ = stream.read(&mut [0; 8192]);
                    let _ = stream.write_all(answer.as_bytes());
                }
                held.push(stream);
            }
        });
        address
    }

    #[test]
    fn keys_and_shares_come_over_tcp_and_over_a_socket() {
        for length in [32, 33] {
            let tcp = Served::on_tcp(Arc::new(Says::new(ARMOR, Ok(length))), LIMITS);
            let unix = Served::on_socket(Arc::new(Says::new(ARMOR, Ok(length))), LIMITS);
            for address in [tcp.address(), unix.address()] {
                assert_eq!(asked(address).unwrap().len(), length, "{address}");
                let service = service(address, Duration::from_secs(20));
                let recipient = ServedRecipient::new(RecipientId::Age("age1x".to_owned()), service);
                assert_eq!(recipient.wrap(&SecretBytes::new(vec![1; length])).unwrap(), ARMOR);
            }
        }
    }

    #[test]
    fn what_is_no_key_is_neither_sent_nor_believed() {
        for length in [0, 16, 31, 34, 1000] {
            let served = Served::on_tcp(Arc::new(Says::new("garbage", Ok(length))), LIMITS);
            let error = asked(served.address()).unwrap_err();
            assert_eq!(error.kind, UnwrapFailure::Broken);
            assert!(
                error.reason.contains(served.address()) && error.reason.contains("no data key"),
                "{error}"
            );
            let recipient = ServedRecipient::new(
                RecipientId::Age("age1x".to_owned()),
                service(served.address(), Duration::from_secs(20)),
            );
            assert!(recipient.wrap(&SecretBytes::new(vec![1; length])).is_err());
            let error = recipient.wrap(&SecretBytes::new(vec![1; 32])).unwrap_err();
            assert!(error.reason.contains("something else than a wrapped key"), "{error}");
        }
    }

    #[test]
    fn refusals_keep_their_class_and_lose_control_characters() {
        for failure in [UnwrapFailure::Broken, UnwrapFailure::Denied, UnwrapFailure::Throttled] {
            let served = Served::on_tcp(Arc::new(Says::new(ARMOR, Err(failure))), LIMITS);
            let error = asked(served.address()).unwrap_err();
            assert_eq!(error.kind, failure);
            assert!(error.reason.ends_with("answered: not today"), "{error}");
        }
    }

    #[test]
    fn a_service_that_is_silent_is_given_up_once() {
        let silent = service(&answering(""), Duration::from_millis(300));
        let started = Instant::now();
        for _ in 0..20 {
            let error = silent.unwrap(&entry("age1x", ARMOR)).unwrap().unwrap_err();
            assert_eq!(error.kind, UnwrapFailure::Unreachable);
            assert!(error.reason.contains("did not answer within 0.3 s") && silent.is_lost(), "{error}");
        }
        assert!(started.elapsed() < Duration::from_secs(5), "20 deadlines were waited for");
    }

    #[test]
    fn a_service_that_is_gone_or_speaks_something_else_is_unreachable() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = asked(&format!("tcp://{closed}")).unwrap_err();
        assert!(error.kind == UnwrapFailure::Unreachable && error.reason.contains("refused"), "{error}");
        let error = asked("unix:///nonexistent/socket").unwrap_err();
        assert!(error.kind == UnwrapFailure::Unreachable && error.reason.contains("No such file"), "{error}");
        let error = asked(&answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")).unwrap_err();
        assert_eq!(error.kind, UnwrapFailure::Unreachable, "{error}");
    }

    #[test]
    fn a_slow_answer_is_late_there_and_others_are_served_still() {
        let mut slow = Says::new(ARMOR, Ok(32));
        slow.takes = Duration::from_secs(3);
        let limits = Limits { requests_max: 1, deadline: Duration::from_millis(200) };
        let served = Served::on_tcp(Arc::new(slow), limits);
        let service = service(served.address(), Duration::from_secs(20));
        let error = service.unwrap(&entry("age1x", ARMOR)).unwrap().unwrap_err();
        assert_eq!(error.kind, UnwrapFailure::Unreachable);
        assert!(error.reason.contains("in time") && !service.is_lost(), "{error}");
    }

    #[test]
    fn no_more_requests_are_worked_on_at_a_time_than_allowed() {
        let mut says = Says::new(ARMOR, Ok(32));
        says.takes = Duration::from_millis(20);
        let says = Arc::new(says);
        let served = Served::on_tcp(Arc::clone(&says) as Arc<dyn Keeper>, LIMITS);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert!(asked(served.address()).is_ok()));
            }
        });
        assert!(says.most.load(Ordering::SeqCst) <= LIMITS.requests_max);
    }

    #[test]
    fn sizes_are_bounded_on_both_sides() {
        let served = Served::on_tcp(Arc::new(Says::new(ARMOR, Ok(32))), LIMITS);
        let fits = "a".repeat(WRAPPED_KEY_BYTES_MAX);
        let ask = |recipient: &str, enc: &str| {
            let service = service(served.address(), Duration::from_secs(20));
            service.unwrap(&entry(recipient, enc)).unwrap()
        };
        assert!(ask("age1x", &fits).is_ok());
        let error = ask("age1x", &format!("{fits}a")).unwrap_err();
        assert!(error.kind == UnwrapFailure::Broken && error.reason.contains("64 KiB"), "{error}");
        assert!(ask(&"x".repeat(WRAPPED_KEY_BYTES_MAX - 100), &fits).is_ok());
        assert!(ask(&"x".repeat(WRAPPED_KEY_BYTES_MAX + 100), &fits).is_err());
    }

    #[test]
    fn it_works_and_ends_inside_another_runtime() {
        let served = Served::on_tcp(Arc::new(Says::new(ARMOR, Ok(32))), LIMITS);
        let address = served.address().to_owned();
        let call = move || asked(&address).is_ok();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let outcomes =
            runtime.block_on(async { [call.clone()(), tokio::task::spawn_blocking(call).await.unwrap()] });
        assert_eq!(outcomes, [true; 2]);
    }
}
