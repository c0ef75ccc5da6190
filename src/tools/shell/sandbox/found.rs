//! Policies that were prepared while their calls were judged, for calls that start soon after. Preparing one
//! takes about a hundred disk lookups, and there is time for it while the model still sends its answer.
//!
//! A command is confined according to the files that existed at its start, however long it runs. A policy that
//! is slightly older only moves this moment.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::draft::Draft;
use super::layout::FsPolicy;
use super::level::Choice;
use super::probe::Available;
use super::temp;
use crate::tools::context::ToolContext;
use crate::tools::shell::sandbox::first_seen::FirstSeen;
use crate::types::ids::CallId;

/// Maximal age of a prepared policy.
const LIFE: Duration = Duration::from_millis(250);
/// Number of policies that are kept, newest first.
const MOST: usize = 16;

/// The newest policies of calls that have not started.
#[derive(Debug, Default)]
pub(in crate::tools) struct Found {
    layouts: Mutex<Vec<Kept>>,
    /// First locations of hidden paths.
    pub(super) memory: Arc<FirstSeen>,
}

#[derive(Debug)]
struct Kept {
    of: Of,
    /// Time before the preparation.
    at: Instant,
    draft: Draft,
}

/// Key of a prepared policy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Of {
    call: CallId,
    workspace: PathBuf,
    additional: Vec<PathBuf>,
    choice: Choice,
}

impl Of {
    fn new(context: &ToolContext, call: CallId, choice: Choice) -> Self {
        let (workspace, additional) =
            (context.session_context.workspace.clone(), context.session_context.additional.clone());
        Self { call, workspace, additional, choice }
    }
}

impl Found {
    /// Prepares the sandbox of a call that is being judged, at level 2 or 3. A failure is reported when the
    /// call starts. Nothing is changed in the workspace. Nothing is prepared for the first command of a
    /// session, which has no folder for temporary files yet. Blocks on the disk.
    pub(in crate::tools::shell) fn look(
        &self,
        context: &ToolContext,
        call: CallId,
        choice: Choice,
        here: &Available,
    ) {
        let (at, temp) = (Instant::now(), &context.settings.sandbox.temp);
        if !temp::has_folder(temp, context.session_context.session_id) {
            return;
        }
        let draft =
            FsPolicy::of(context, choice.network).and_then(|layout| Draft::of(choice, layout, temp, here));
        if let Ok(draft) = draft {
            self.keep(Of::new(context, call, choice), at, draft);
        }
    }

    /// Takes the prepared sandbox of a call, if there is a recent one. Each is used once.
    pub(in crate::tools::shell) fn take(
        &self,
        context: &ToolContext,
        call: CallId,
        choice: Choice,
    ) -> Option<Draft> {
        self.find(&Of::new(context, call, choice), Instant::now())
    }

    /// An empty cache that keeps the first locations of another one.
    pub(in crate::tools) fn after(before: &Self) -> Self {
        Self { memory: Arc::clone(&before.memory), ..Self::default() }
    }

    fn find(&self, of: &Of, now: Instant) -> Option<Draft> {
        let mut all = self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|kept| kept.of == *of)?;
        let kept = all.remove(at);
        (now.saturating_duration_since(kept.at) < LIFE).then_some(kept.draft)
    }

    fn keep(&self, of: Of, at: Instant, draft: Draft) {
        let mut all = self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|kept| kept.of.call != of.call && at.saturating_duration_since(kept.at) < LIFE);
        all.truncate(MOST - 1);
        all.insert(0, Kept { of, at, draft });
    }
}

#[cfg(test)]
mod tests {
    use super::super::level::Level;
    use super::*;
    use crate::types::ids::{Mint, Seed};

    #[test]
    fn cached_policy_serves_its_call_once_and_briefly() {
        let found = Found::default();
        let mut mint = Mint::new(0, Seed(1));
        let choice = Choice { level: Level::Landlock, network: false, guards: true };
        let of = Of { call: mint.call(), workspace: "/w".into(), additional: Vec::new(), choice };
        let then = Instant::now();
        let keep = |of: &Of| found.keep(of.clone(), then, Draft::empty(of.choice));
        let is_found = |of: &Of, after: Duration| found.find(of, then + after).is_some();
        keep(&of);
        assert!(is_found(&of, LIFE / 2));
        assert!(!is_found(&of, Duration::ZERO), "a second time");
        keep(&of);
        assert!(!is_found(&of, LIFE), "too old");
        for other in [
            Of { call: mint.call(), ..of.clone() },
            Of { workspace: "/other".into(), ..of.clone() },
            Of { additional: vec!["/a".into()], ..of.clone() },
            Of { choice: Choice { network: true, ..choice }, ..of.clone() },
            Of { choice: Choice { level: Level::Bubblewrap, ..choice }, ..of.clone() },
        ] {
            keep(&of);
            assert!(!is_found(&other, Duration::ZERO), "{other:?}");
        }
        for _ in 0..2 * MOST {
            keep(&Of { call: mint.call(), ..of.clone() });
        }
        assert_eq!(found.layouts.lock().expect("all").len(), MOST);
        found.keep(of, then + LIFE, Draft::empty(choice));
        assert_eq!(found.layouts.lock().expect("all").len(), 1, "the others are too old");
    }
}
