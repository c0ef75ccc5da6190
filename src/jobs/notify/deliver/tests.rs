use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::*;
use store::{JobCommit, JobRow, JobWrite, OwedDelivery, Store, StoreOwner};
use types::ids::JobId;
use types::job::{Delivery, DeliveryStatus, JobState};

const DEADLINE: Duration = Duration::from_secs(60);

/// A store with one job, and a clock that the test sets.
struct TestHost {
    store: Store,
    clock: AtomicI64,
    targets: Mutex<BTreeMap<String, NotifyTarget>>,
    wake: Arc<Notify>,
    recorded: mpsc::UnboundedSender<DeliveryTry>,
    dir: tempfile::TempDir,
}

impl DeliveryHost for TestHost {
    fn now(&self) -> Timestamp {
        Timestamp(self.clock.load(Ordering::SeqCst))
    }

    fn tools(&self) -> (Toolbox, PathBuf) {
        let home = self.dir.path().to_owned();
        (Toolbox::new(tools::Settings::new(home.clone())), home)
    }

    fn target(&self, name: &str) -> Option<NotifyTarget> {
        base::sync::lock(&self.targets).get(name).cloned()
    }

    async fn pending(&self, per_target: u32, limit: u32) -> Result<Vec<PendingDelivery>, JobsError> {
        Ok(self.store.reader().pending_deliveries(per_target, limit).await?)
    }

    async fn record(&self, tried: DeliveryTry) -> Result<(), JobsError> {
        let writes = vec![JobWrite::DeliveryTry(Box::new(tried.clone()))];
        self.store.commit_job(JobCommit { writes, ..JobCommit::default() }).await?;
        let _ = self.recorded.send(tried);
        Ok(())
    }
}

/// The running task with its host.
struct Fixture {
    host: Arc<TestHost>,
    recorded: mpsc::UnboundedReceiver<DeliveryTry>,
    task: JoinHandle<()>,
    mint: Mint,
    _owner: StoreOwner,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fixture {
    async fn start(targets: &[(&str, NotifyTarget)]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let (store, owner) = Store::open(&dir.path().join("db")).await.expect("a store");
        let targets = targets.iter().map(|(name, target)| ((*name).to_owned(), target.clone())).collect();
        let (sender, recorded) = mpsc::unbounded_channel();
        let host = Arc::new(TestHost {
            store,
            clock: AtomicI64::new(1_000_000),
            targets: Mutex::new(targets),
            wake: Arc::default(),
            recorded: sender,
            dir,
        });
        let task = tokio::spawn(run(Arc::clone(&host), Arc::clone(&host.wake)));
        Self { host, recorded, task, mint: Mint::new(1, Seed(1)), _owner: owner }
    }

    /// A table with an address and a secret.
    fn hook(port: u16, dir: &std::path::Path) -> NotifyTarget {
        use std::os::unix::fs::PermissionsExt as _;
        let file = dir.join("secret");
        std::fs::write(&file, "geheim-secret\n").expect("written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("private");
        NotifyTarget {
            url: Some(format!("http://127.0.0.1:{port}/geheim-path?key=geheim")),
            secret_file: Some(file),
            ..NotifyTarget::default()
        }
    }

    async fn job(&mut self) -> JobId {
        let job_id = self.mint.job();
        let row = JobRow {
            job_id,
            state: JobState::Succeeded,
            cwd: "/w".into(),
            schedule_id: None,
            template: None,
            unique_key: None,
            created_at: Timestamp(1),
            started_at: None,
            ended_at: None,
            cost_usd_micros: 0,
            record: "{}".into(),
        };
        let writes = vec![JobWrite::Insert(Box::new(row), "{}".into())];
        self.host.store.commit_job(JobCommit { writes, ..JobCommit::default() }).await.expect("written");
        job_id
    }

    async fn owe(&mut self, job_id: JobId, target: &str, body: &str) -> MessageId {
        let message_id = self.mint.message();
        let owed = OwedDelivery {
            job_id,
            message_id,
            target: target.into(),
            job_state: JobState::Succeeded,
            owed_at: self.host.now(),
            body: body.into(),
        };
        let writes = vec![JobWrite::Owe(Box::new(owed))];
        self.host.store.commit_job(JobCommit { writes, ..JobCommit::default() }).await.expect("written");
        self.host.wake.notify_one();
        message_id
    }

    async fn next_try(&mut self) -> DeliveryTry {
        tokio::time::timeout(DEADLINE, self.recorded.recv()).await.expect("in time").expect("a try")
    }

    fn advance(&self, to: Timestamp) {
        self.host.clock.store(to.0, Ordering::SeqCst);
        self.host.wake.notify_one();
    }

    async fn deliveries(&self, job_id: JobId) -> Vec<Delivery> {
        self.host.store.reader().deliveries_of(job_id).await.expect("read")
    }
}

/// What a test server does with the connections in their order; the last one repeats.
#[derive(Clone, Copy)]
enum Answer {
    Status(u16),
    Hang,
    Drop,
}

struct Server {
    port: u16,
    requests: mpsc::UnboundedReceiver<String>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(answers: &'static [Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (sender, requests) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let mut open = Vec::new();
            for index in 0.. {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let answer = answers[usize::min(index, answers.len() - 1)];
                let mut text = Vec::new();
                let mut chunk = [0; 4096];
                let is_complete = |text: &[u8]| {
                    let text = String::from_utf8_lossy(text);
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
                    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                    length.is_some_and(|length| length.parse() == Ok(body.len()))
                };
                while !is_complete(&text) {
                    let read = stream.read(&mut chunk).await.expect("bytes");
                    text.extend(&chunk[..read]);
                }
                let _ = sender.send(String::from_utf8(text).expect("UTF-8"));
                match answer {
                    Answer::Status(status) => {
                        let head = format!(
                            "HTTP/1.1 {status} X\r\nlocation: http://127.0.0.1:{port}/elsewhere\r\n\
                             content-length: 0\r\nconnection: close\r\n\r\n"
                        );
                        let _ = stream.write_all(head.as_bytes()).await;
                    }
                    Answer::Hang => open.push(stream),
                    Answer::Drop => {}
                }
            }
        });
        Self { port, requests, task }
    }

    async fn next(&mut self) -> String {
        tokio::time::timeout(DEADLINE, self.requests.recv()).await.expect("in time").expect("a request")
    }
}

fn header<'r>(request: &'r str, name: &str) -> &'r str {
    let start = format!("{name}: ");
    request.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_else(|| panic!("{name}: {request}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_message_is_sent_again_with_same_id_for_a_day() {
    let mut server = Server::start(&[Answer::Status(500)]).await;
    let dir = tempfile::tempdir().expect("a folder");
    let mut fixture = Fixture::start(&[("x", Fixture::hook(server.port, dir.path()))]).await;
    let job_id = fixture.job().await;
    let id = fixture.owe(job_id, "x", "{\"type\":\"job.succeeded\"}").await;
    for tries in 1..=8 {
        let request = server.next().await;
        assert!(request.starts_with("POST /geheim-path?key=geheim "), "{request}");
        assert_eq!(header(&request, "webhook-id"), id.to_string());
        assert_eq!(header(&request, "content-type"), "application/json");
        let seconds = fixture.host.now().0 / 1_000;
        assert_eq!(header(&request, "webhook-timestamp"), seconds.to_string());
        let secret = Secret::parse("geheim-secret").unwrap_or_else(|why| panic!("{why}"));
        let signature = secret.sign(&id.to_string(), seconds, "{\"type\":\"job.succeeded\"}");
        assert_eq!(header(&request, "webhook-signature"), signature);
        let tried = fixture.next_try().await;
        assert_eq!(tried.tries, tries);
        assert_eq!(tried.error.as_deref(), Some("it answered 500"));
        match tried.next_try {
            Some(next) => fixture.advance(next),
            None => assert_eq!((tries, tried.status), (8, DeliveryStatus::Failed)),
        }
    }
    let past_ms = fixture.host.now().0 - 1_000_000;
    assert!(past_ms > 24 * 3_600_000, "{past_ms}");
    let [delivery] = &fixture.deliveries(job_id).await[..] else { panic!("one") };
    assert_eq!((delivery.status, delivery.tries, delivery.next_try_ms), (DeliveryStatus::Failed, 8, None));
    let failed = fixture.host.store.reader().last_failed_delivery(Timestamp(0)).await.expect("read");
    assert_eq!(failed.map(|it| (it.job_id, it.delivery.tries)), Some((job_id, 8)));
    assert!(fixture.host.store.reader().pending_deliveries(9, 9).await.expect("read").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn later_message_of_a_job_waits_for_the_earlier_one() {
    let mut server = Server::start(&[Answer::Status(503), Answer::Status(204)]).await;
    let dir = tempfile::tempdir().expect("a folder");
    let mut fixture = Fixture::start(&[("x", Fixture::hook(server.port, dir.path()))]).await;
    let (one, other) = (fixture.job().await, fixture.job().await);
    let first = fixture.owe(one, "x", "1").await;
    assert_eq!(fixture.next_try().await.status, DeliveryStatus::Pending);
    let second = fixture.owe(one, "x", "2").await;
    let of_other = fixture.owe(other, "x", "3").await;
    let tried = fixture.next_try().await;
    assert_eq!((tried.message_id, tried.status), (of_other, DeliveryStatus::Delivered));
    fixture.advance(fixture.host.now().plus(5_000));
    for expected in [first, second] {
        let tried = fixture.next_try().await;
        assert_eq!((tried.message_id, tried.status), (expected, DeliveryStatus::Delivered));
    }
    let mut bodies = Vec::new();
    for _ in 0..4 {
        bodies.push(server.next().await.chars().last().expect("a body"));
    }
    assert_eq!(bodies, ['1', '3', '1', '2']);
}

#[tokio::test(flavor = "multi_thread")]
async fn redirect_is_not_followed_and_gone_stops_the_tries() {
    let mut server = Server::start(&[Answer::Status(307), Answer::Drop, Answer::Status(410)]).await;
    let dir = tempfile::tempdir().expect("a folder");
    let mut fixture = Fixture::start(&[("x", Fixture::hook(server.port, dir.path()))]).await;
    let job_id = fixture.job().await;
    fixture.owe(job_id, "x", "{}").await;
    let redirected = fixture.next_try().await;
    assert_eq!(
        (redirected.status, redirected.error.as_deref()),
        (DeliveryStatus::Pending, Some("it answered 307"))
    );
    fixture.advance(redirected.next_try.expect("a time"));
    let dropped = fixture.next_try().await;
    assert!(dropped.error.as_ref().is_some_and(|why| !why.contains("geheim")), "{dropped:?}");
    fixture.advance(dropped.next_try.expect("a time"));
    let gone = fixture.next_try().await;
    assert_eq!((gone.status, gone.tries, gone.next_try), (DeliveryStatus::Failed, 3, None));
    for _ in 0..3 {
        assert!(server.next().await.starts_with("POST /geheim-path"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn receiver_that_hangs_holds_up_no_other_job() {
    let mut server = Server::start(&[Answer::Hang, Answer::Status(200)]).await;
    let dir = tempfile::tempdir().expect("a folder");
    let mut fixture = Fixture::start(&[("x", Fixture::hook(server.port, dir.path()))]).await;
    let (one, other) = (fixture.job().await, fixture.job().await);
    let hanging = fixture.owe(one, "x", "1").await;
    server.next().await;
    let quick = fixture.owe(other, "x", "2").await;
    assert_eq!(fixture.next_try().await.message_id, quick);
    let tried = fixture.next_try().await;
    assert_eq!(tried.message_id, hanging);
    assert_eq!(tried.error.as_deref(), Some("it did not answer in time"));
}

#[tokio::test(flavor = "multi_thread")]
async fn receiver_that_hangs_delays_no_other_receiver() {
    let mut hanging = Server::start(&[Answer::Hang]).await;
    let quick = Server::start(&[Answer::Status(200)]).await;
    let dir = tempfile::tempdir().expect("a folder");
    let hook = |port: u16| Fixture::hook(port, dir.path());
    let mut fixture = Fixture::start(&[("hangs", hook(hanging.port)), ("quick", hook(quick.port))]).await;
    for _ in 0..12 {
        let job_id = fixture.job().await;
        fixture.owe(job_id, "hangs", "1").await;
    }
    for _ in 0..MAX_PARALLEL_OF_TARGET {
        hanging.next().await;
    }
    let job_id = fixture.job().await;
    let id = fixture.owe(job_id, "quick", "2").await;
    // The first recorded try is the one that does not wait for the others.
    let tried = fixture.next_try().await;
    assert_eq!((tried.message_id, tried.status), (id, DeliveryStatus::Delivered));
}

#[tokio::test(flavor = "multi_thread")]
async fn command_gets_the_message_and_missing_tables_are_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("message");
    let command = ["sh".to_owned(), "-c".into(), format!("cat > {}", file.display())].to_vec();
    let unset = NotifyTarget {
        url: Some("https://127.0.0.1:1/geheim".into()),
        secret_env: Some("AGENTD_TEST_NO_SUCH_SECRET".into()),
        ..NotifyTarget::default()
    };
    let targets = [("c", NotifyTarget { command, ..NotifyTarget::default() }), ("u", unset)];
    let mut fixture = Fixture::start(&targets).await;
    let job_id = fixture.job().await;
    fixture.owe(job_id, "c", "{\"a\":1}").await;
    assert_eq!(fixture.next_try().await.status, DeliveryStatus::Delivered);
    assert_eq!(std::fs::read_to_string(&file).expect("written"), "{\"a\":1}\n");
    for (target, expected) in [("removed", "[jobs.notify.removed]"), ("u", "AGENTD_TEST_NO_SUCH_SECRET")] {
        fixture.owe(job_id, target, "{}").await;
        let tried = fixture.next_try().await;
        assert_eq!(tried.status, DeliveryStatus::Pending);
        let why = tried.error.expect("an error");
        assert!(why.contains(expected) && !why.contains("geheim"), "{why}");
    }
    let targets: Vec<String> = fixture.deliveries(job_id).await.into_iter().map(|it| it.target).collect();
    assert_eq!(targets, ["c", "removed", "u"]);
}
