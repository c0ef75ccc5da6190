//! The table of crash points: each row of the specification, its points in the source and what the
//! tests see after a restart. RELIABILITY.md shows the table; a test compares them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A row of the table.
pub struct Row {
    pub id: &'static str,
    /// The moment of the crash, as text.
    pub moment: &'static str,
    /// Crash points in the source. Empty if tests make the moment from outside, or if the row needs an unbuilt part.
    pub points: &'static [&'static str],
    /// The observations of the tests after a restart.
    pub seen: &'static str,
}

const fn row(
    id: &'static str,
    moment: &'static str,
    points: &'static [&'static str],
    seen: &'static str,
) -> Row {
    Row { id, moment, points, seen }
}

/// All rows in the order of the specification.
pub const ROWS: &[Row] = &[
    row(
        "C1",
        "submit received, before its commit",
        &["C1.received", "C1.decided"],
        "no turn; the same submit with its key makes one",
    ),
    row(
        "C2",
        "submit committed, before the acknowledgement (of a running and of a queued turn)",
        &["C2.committed", "C2.performed"],
        "one turn, which goes on; the same submit with its key returns it",
    ),
    row(
        "C3",
        "before the model request is sent; before a helper's",
        &["C3", "C3.helper"],
        "the turn goes on, resumed once; one request was sent. A helper's call is given up and booked, and not made \
         again by itself",
    ),
    row(
        "C4",
        "request sent: no byte of the answer yet (killed from outside), or only its head",
        &["C4"],
        "the same request is sent again; the turn is resumed once; the lost attempt is booked",
    ),
    row(
        "C5",
        "mid-stream, inside text",
        &["C5"],
        "the partial message is `interrupted` with all the text that was shown, and not in the next request",
    ),
    row(
        "C6",
        "mid-stream, inside the arguments of a tool call",
        &["C6"],
        "the call does not exist: never asked for, never run; the message is `interrupted`",
    ),
    row(
        "C7",
        "answer complete, before its commit; a helper's",
        &["C7", "C7.helper"],
        "as C5, without a partial message if nothing was shown yet; a helper's as C3",
    ),
    row(
        "C8",
        "message with tool calls committed, before the permission request",
        &["C8"],
        "the request appears once; the tool runs once when it is allowed",
    ),
    row(
        "C9",
        "permission pending, with a client attached and with none",
        &["C9"],
        "the same request is pending with the same deadline, announced to each client that attaches, and its answer runs \
         the tool once; so is one about a second run outside the sandbox",
    ),
    row("C10", "answer received, before its commit", &["C10"], "pending again under the same id"),
    row(
        "C11",
        "answer committed, before the tool's intent (it waits for a call before it)",
        &["C11"],
        "no second question; the tool runs once, in its turn",
    ),
    row(
        "C12",
        "intent committed, before the start",
        &["C12"],
        "a command is `unknown` and never run again, nor is its second run outside the sandbox; an edit is found \
         not to be done; a read runs again",
    ),
    row(
        "C13",
        "tool running, also with a child that left its session; in the background, behind its call",
        &["C13.started", "C13.recorded", "C13.told", "C13.background"],
        "every process is gone; the command is `unknown` and never run again; output that was shown is in the \
         result. In the background: `lost`, and BashOutput gives what was shown",
    ),
    row(
        "C14",
        "tool exited, before its result is committed; its spool is whole and no blob yet; a command in the background \
         ended, before that is committed",
        &["C14", "C14.spooled", "C14.background"],
        "a command is `unknown` and never run again, in the background `lost`; an edit is found to be done; the next \
         start removes the spool",
    ),
    row(
        "C15",
        "one of three tools done, in parallel and one after the other",
        &["C15"],
        "its result is kept, the others as C12 to C14; the model gets the results in the order of the calls",
    ),
    row(
        "C16",
        "inside the change of files: temporary file made, written, synced, put in place; one removed; between two; a file \
         that is written in place: its undo record written, half of it written, all of it",
        &[
            "C16.made",
            "C16.written",
            "C16.synced",
            "C16.replaced",
            "C16.removed",
            "C16.between",
            "C16.undo",
            "C16.overwriting",
            "C16.overwritten",
        ],
        "of each file the old or the new content, whole; no temporary file; the result says which",
    ),
    row(
        "C17",
        "results committed, before the next request",
        &["C17"],
        "the turn goes on with that request; the tool is not run again",
    ),
    row(
        "C18",
        "before, inside and after a compaction: decided, the summary requested, the edit committed",
        &["C18.decided", "C18.requested", "C18.completed"],
        "the next request has the old or the new conversation, whole; a summary is requested again; the journal still \
         has the original",
    ),
    row("C19", "abort committed, before the processes are ended", &["C19"], "aborted; every process is gone"),
    row(
        "C20",
        "inside a migration: any step of SQLite's machine, the copy before it included",
        &["C20"],
        "the second start completes it; the copy is whole and has the old schema",
    ),
    row(
        "C21",
        "inside recovery, twice in a row",
        &["C21.listed", "C21.loaded", "C21.decided", "C21.committed", "C21.done"],
        "as after one restart: nothing closed twice, nothing asked twice, nothing run",
    ),
    row(
        "C22",
        "inside a checkpoint (killed from outside; the shared index shows that it was under way), and between \
         two of 50 clients that are told",
        &["C22.fanout"],
        "no gap, no number twice: every client reads on where it stood",
    ),
    row(
        "C23",
        "inside a graceful shutdown with 10 running turns",
        &["C23.told", "C23.parking", "C23.parked", "C23.closing", "C23.closed"],
        "all turns go on and end",
    ),
    row(
        "C24",
        "a grant with its row in the audit log, before and after their commit; a grant for a folder: in the journal and \
         not in its file, its file synced and not in place, in place",
        &["C24.deciding", "C24.decided", "C24.grant_owed", "C24.grant_synced", "C24.grant_written"],
        "both or none; the log is whole, with one row for each decision of the journals; a grant for a folder that \
         was answered counts after the restart",
    ),
    row(
        "C25",
        "the content of a file stored, before its change; inside a rewind: one of several files restored, all of them \
         and the conversation not",
        &["C25.stored", "C25.partly", "C25.restored"],
        "the file is unchanged; the conversation is not rewound, and a repeated rewind completes it",
    ),
    row(
        "C26",
        "a sub-agent: reserved and named in the journal of its parent, its session created, its task submitted",
        &["C26.reserved", "C26.created", "C26.submitted"],
        "the parent follows the same session, which gets its task once; the turn ends with its result",
    ),
    row(
        "JC1",
        "`job.create` checked, before its commit; committed, before the answer",
        &["JC1.checked", "JC1.written"],
        "no job; one job, and the same call with its key returns it",
    ),
    row(
        "JC2",
        "a job was chosen to start, before the claim's commit; claimed; its session created, before the submit",
        &["JC2.chosen", "JC2.claimed", "JC2.session"],
        "the job runs, with one session and one turn",
    ),
    row(
        "JC3",
        "in the making of a worktree, and in its end and removal",
        &[
            "JC3.add",
            "JC3.added",
            "JC3.branch",
            "JC3.complete",
            "JC3.commit",
            "JC3.remove",
            "JC3.moved",
            "JC3.removed",
            "JC3.forgotten",
        ],
        "the partial worktree is removed or completed; no lock file stays",
    ),
    row(
        "JC4",
        "the turn of an attempt is completed, before the job's final state",
        &["JC4.ended"],
        "the final state follows without a model call",
    ),
    row(
        "JC5",
        "the final state of a job is committed, before its message is sent; sent, before that is noted",
        &["JC5.owed", "JC5.sent"],
        "the message arrives; it arrives again with the same `webhook-id`",
    ),
    row(
        "JC6",
        "a slot of a schedule is due, before its row; row and job written, before the start",
        &["JC6.due", "JC6.written"],
        "one job in both cases",
    ),
    row(
        "JC7",
        "a cancel is committed, before the stop; stopped, before the final state; a retry is committed, before its attempt",
        &["JC7.cancelled", "JC7.stopped", "JC7.retried"],
        "cancelled, and the processes are gone; one further attempt",
    ),
    row(
        "JC8",
        "the clock goes an hour forward, an hour back, over both changes of summer time, or three days on while the \
         machine sleeps; the daemon is killed meanwhile",
        &[],
        "each slot of a schedule once, in order (tests in `scenarios/schedules.rs` and `crash/night.rs`)",
    ),
];

/// Rows, or parts of rows, that need an unbuilt part. The issue that builds the part closes the row.
#[test]
fn unbuilt_matrix_rows_are_listed_and_counted() {
    let open: Vec<&str> = ROWS.iter().filter(|row| row.seen.contains("not yet:")).map(|row| row.id).collect();
    for row in ROWS.iter().filter(|row| row.seen.contains("not yet:")) {
        eprintln!("{}: {}", row.id, row.seen);
    }
    assert!(open.is_empty(), "{open:?}");
    let without = |row: &&Row| row.points.is_empty() && !row.seen.starts_with("not yet:");
    let from_outside: Vec<&str> = ROWS.iter().filter(without).map(|row| row.id).collect();
    assert_eq!(from_outside, ["JC8"], "another row without a point must begin with `not yet:`");
}

#[test]
fn every_specified_crash_row_is_in_matrix() {
    let ids: Vec<String> = ROWS.iter().map(|row| row.id.to_owned()).collect();
    let of_sessions = (1..=26).map(|n| format!("C{n}"));
    assert_eq!(ids, of_sessions.chain((1..=8).map(|n| format!("JC{n}"))).collect::<Vec<_>>());
    for row in ROWS {
        for point in row.points {
            assert_eq!(point.split('.').next(), Some(row.id), "{point} is in the row of {}", row.id);
        }
    }
}

#[test]
fn matrix_crash_points_equal_source_crash_points() {
    let mut found = BTreeSet::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    let table: BTreeSet<String> =
        ROWS.iter().flat_map(|row| row.points).map(|point| (*point).to_owned()).collect();
    assert_eq!(found, table);
}

/// Collects the names in calls of `point`, at any position in a line.
fn collect(path: &Path, found: &mut BTreeSet<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder").flatten() {
            collect(&entry.path(), found);
        }
        return;
    }
    let text = fs::read_to_string(path).expect("source is text");
    for call in text.split("point(").skip(1) {
        let arguments = call.split(';').next().unwrap_or_default();
        // The argument of a call may be a choice between two names.
        let names = arguments.split('"').skip(1).step_by(2);
        found.extend(names.filter(|name| is_point(name)).map(str::to_owned));
    }
}

fn is_point(name: &str) -> bool {
    let number =
        name.trim_start_matches('J').strip_prefix('C').map(|rest| rest.split('.').next().unwrap_or_default());
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The table in RELIABILITY.md.
fn page() -> String {
    let mut page = String::from(
        "| # | the daemon dies | points in the source | after the restart |\n|---|---|---|---|\n",
    );
    for row in ROWS {
        let points: Vec<String> = row.points.iter().map(|point| format!("`{point}`")).collect();
        page.push_str(&format!("| {} | {} | {} | {} |\n", row.id, row.moment, points.join(" "), row.seen));
    }
    page
}

#[test]
fn reliability_document_shows_current_crash_matrix() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("RELIABILITY.md");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let (begin, end) = ("<!-- crash points: begin -->\n", "<!-- crash points: end -->");
    let (head, rest) = text.split_once(begin).expect("RELIABILITY.md has a place for the table");
    let (table, tail) = rest.split_once(end).expect("and an end of it");
    if std::env::var_os("AGENTD_BLESS").is_some() {
        fs::write(&path, format!("{head}{begin}{}{end}{tail}", page())).expect("written");
        return;
    }
    assert_eq!(table, page(), "run the tests once with AGENTD_BLESS=1");
}
