//! What a dead daemon left of its jobs: rows of the database, worktrees, branches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sqlx::Row as _;

use super::invariants::{Journals, open_copy};
use super::job_kill_loop::is_final;

/// The rows about jobs.
pub struct JobFiles {
    /// The whole state of each job, by id.
    pub jobs: BTreeMap<String, Value>,
    /// The events of each job, with their numbers.
    events: BTreeMap<String, Vec<(i64, Value)>>,
    /// The sessions of attempts, with their jobs and states.
    sessions: Vec<(String, String, String)>,
    /// Schedule, slot and job of each firing.
    firings: Vec<(String, i64, String)>,
    /// All worktrees that were ever made: whether each is there, and what is stored about it.
    pub worktrees: Vec<(bool, Value)>,
}

impl JobFiles {
    /// Reads a copy of the database.
    pub async fn read(database: &Path) -> Self {
        let (_folder, mut connection) = open_copy(database).await;
        let json = |text: String| -> Value { serde_json::from_str(&text).expect("JSON") };
        let rows = sqlx::query("select job_id, record from job").fetch_all(&mut connection).await;
        let jobs = rows.expect("read").iter().map(|row| (row.get(0), json(row.get(1)))).collect();
        let query =
            "select j.job_id, e.seq, e.body from job_event e join job j on j.id = e.job order by 1, 2";
        let mut events: BTreeMap<String, Vec<(i64, Value)>> = BTreeMap::new();
        for row in sqlx::query(query).fetch_all(&mut connection).await.expect("read") {
            events.entry(row.get(0)).or_default().push((row.get(1), json(row.get(2))));
        }
        let query = "select session_id, job_id, state from session where job_id is not null";
        let rows = sqlx::query(query).fetch_all(&mut connection).await.expect("read");
        let sessions = rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
        let query = "select schedule_id, slot_ms, job_id from schedule_firing order by 1, 2";
        let rows = sqlx::query(query).fetch_all(&mut connection).await.expect("read");
        let firings = rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
        let query = "select removed_at_ms is null, record from worktree order by id";
        let rows = sqlx::query(query).fetch_all(&mut connection).await.expect("read");
        let worktrees = rows.iter().map(|row| (row.get(0), json(row.get(1)))).collect();
        Self { jobs, events, sessions, firings, worktrees }
    }

    /// What holds after every crash.
    pub fn check(&self, journals: &Journals) {
        let mut sessions: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
        for (id, record) in &self.jobs {
            let attempts = record["attempts"].as_array().expect("a list");
            let living = attempts.iter().filter(|attempt| attempt["ended_at_ms"].is_null()).count();
            let state = &record["job"]["state"];
            let has_attempt = *state == "running" || *state == "waiting";
            assert_eq!(living, usize::from(has_attempt), "living attempts: {record}");
            for (attempt, number) in attempts.iter().zip(1_u64..) {
                assert_eq!(attempt["attempt"], number, "{record}");
                let session = attempt["session_id"].as_str().expect("an id");
                let (owner, count) = sessions.entry(session).or_insert((id, 0));
                assert_eq!(*owner, id, "{session} works for two jobs");
                *count += 1;
            }
            self.check_events(id, record);
        }
        for (session, job, state) in &self.sessions {
            let (owner, attempts) =
                sessions.get(session.as_str()).unwrap_or_else(|| panic!("{session} is no attempt of {job}"));
            assert_eq!(owner, job, "{session}");
            let is_over = is_final(&self.jobs[job]["job"]["state"]);
            assert!(!is_over || state == "archived", "{session} is {state}, but {job} is over");
            let Some(journal) = journals.get(session) else { continue };
            let turns = journal.values().filter(|event| event["type"] == "turn.started").count();
            assert!(turns <= *attempts, "{session} of {job}: {turns} turns for {attempts} attempts");
        }
        let mut slots = BTreeSet::new();
        for (schedule, slot, job) in &self.firings {
            assert!(slots.insert((schedule, slot)), "{schedule} fired twice at {slot}");
            assert!(self.jobs.contains_key(job), "{job} of a slot is lost");
        }
        let mut jobs_of_slots = BTreeSet::new();
        for record in self.jobs.values().filter(|record| record["job"]["slot_ms"].is_i64()) {
            let slot = (record["job"]["schedule_id"].to_string(), record["job"]["slot_ms"].as_i64());
            assert!(jobs_of_slots.insert(slot), "two jobs of one slot: {record}");
        }
        assert_eq!(jobs_of_slots.len(), slots.len(), "slots and their jobs are written together");
    }

    /// The events have no gap, tell of one attempt at a time, and end at the job's state.
    fn check_events(&self, id: &str, record: &Value) {
        let events = self.events.get(id).map_or(&[][..], Vec::as_slice);
        let (mut attempts, mut is_living, mut is_over) = (0_u64, false, false);
        for ((seq, event), number) in events.iter().zip(1_i64..) {
            assert_eq!(*seq, number, "{id} has a gap in its events");
            let wrong = || panic!("{id}: out of place: {event} in {events:#?}");
            match event["type"].as_str().expect("a type") {
                "job.started" => {
                    attempts += 1;
                    if is_living || is_over || event["attempt"] != attempts {
                        wrong();
                    }
                    is_living = true;
                }
                "job.retrying" => {
                    if !is_living {
                        wrong();
                    }
                    is_living = false;
                }
                "job.completed" => {
                    if is_over {
                        wrong();
                    }
                    (is_living, is_over) = (false, true);
                }
                "job.queued" => is_over = false,
                _ => {}
            }
        }
        let job = &record["job"];
        assert_eq!(job["seq"], events.len(), "{id}");
        assert_eq!(job["attempt"], attempts, "{id}");
        assert_eq!(is_final(&job["state"]), is_over, "{id}: {record}");
    }

    /// Every slot of these schedules has a job or is counted as missed by the next one. Call it at the end.
    pub fn check_slots(&self, schedules: &[String], period_ms: i64) {
        for schedule in schedules {
            let of_schedule = |record: &&Value| record["job"]["schedule_id"] == schedule.as_str();
            let mut slots: Vec<(i64, i64)> = Vec::new();
            for record in self.jobs.values().filter(of_schedule) {
                let job = &record["job"];
                let Some(slot) = job["slot_ms"].as_i64() else { continue };
                slots.push((slot, job["missed_slots"].as_i64().unwrap_or(0)));
            }
            slots.sort_unstable();
            for pair in slots.windows(2) {
                let ((before, _), (slot, missed)) = (pair[0], pair[1]);
                assert_eq!(slot - before, period_ms * (1 + missed), "{schedule}: slots are lost: {pair:?}");
            }
        }
    }

    /// Only worktrees stay that their jobs keep, and git knows exactly these. Call it when all jobs are over. Returns how
    /// many stay.
    pub fn check_worktrees(&self, folder: &Path, repository: &Path) -> u64 {
        let mut kept: BTreeSet<PathBuf> = BTreeSet::new();
        for (is_there, record) in &self.worktrees {
            let keep = record["choice"]["keep"].as_str().unwrap_or("changed");
            assert!(!is_there || record["is_complete"] == true, "a partial worktree stays: {record}");
            let was_made = record["is_complete"] == true;
            assert!(*is_there || keep != "always" || !was_made, "it is kept always: {record}");
            if !is_there {
                continue;
            }
            assert!(record["finished_at"].is_i64(), "the work in it has not ended: {record}");
            let path = PathBuf::from(record["path"].as_str().expect("a path"));
            let range = format!("{}..HEAD", record["base"].as_str().expect("a commit"));
            let is_changed = git(&path, &["rev-list", "--count", &range]) != "0"
                || !git(&path, &["status", "--porcelain"]).is_empty();
            assert!(keep == "always" || (keep == "changed" && is_changed), "left over: {record}");
            kept.insert(path);
        }
        let entries = std::fs::read_dir(folder).map(|all| all.flatten().map(|it| it.path()).collect());
        assert_eq!(entries.unwrap_or_else(|_| BTreeSet::new()), kept, "folders of worktrees");
        let listed = git(repository, &["worktree", "list", "--porcelain"]);
        let listed: BTreeSet<PathBuf> =
            listed.lines().filter_map(|line| line.strip_prefix("worktree ")).map(PathBuf::from).collect();
        let others: BTreeSet<PathBuf> = listed.into_iter().filter(|path| path != repository).collect();
        assert_eq!(others, kept, "git worktree list");
        let mut locks = Vec::new();
        find_locks(&repository.join(".git"), &mut locks);
        assert!(locks.is_empty(), "lock files: {locks:?}");
        git(repository, &["fsck", "--no-dangling"]);
        kept.len() as u64
    }
}

fn find_locks(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            find_locks(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "lock") {
            found.push(path);
        }
    }
}

/// Runs git as a user would, and returns its output.
fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(folder).args(args).output().expect("git starts");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

/// Makes this folder a repository with one commit.
pub fn make_repository(folder: &Path) {
    std::fs::write(folder.join("a.txt"), "one\n").expect("written");
    git(folder, &["init", "-q", "-b", "trunk"]);
    git(folder, &["config", "user.name", "Ann"]);
    git(folder, &["config", "user.email", "ann@example.org"]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "first"]);
}
