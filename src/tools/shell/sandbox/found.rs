//! Layouts that were found when their calls were judged, with drafts of what holds them, for calls that start at once: to
//! find one takes a hundred looks at the disk, and while an answer is being written there is time for it.
//!
//! A command is held by what there was when it began, however long it runs. A layout that is a little older
//! than the command moves that moment and nothing else.

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

/// How old a layout may be that a command is held by.
const LIFE: Duration = Duration::from_millis(250);
/// So many are kept at most, the newest.
const MOST: usize = 16;

/// The newest layouts of calls that have not started.
#[derive(Debug, Default)]
pub(in crate::tools) struct Found {
    layouts: Mutex<Vec<Kept>>,
    /// Where hidden things lay.
    pub(super) memory: Arc<FirstSeen>,
}

#[derive(Debug)]
struct Kept {
    of: Of,
    /// Before it was looked for.
    at: Instant,
    draft: Draft,
}

/// What a layout was found for.
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
    /// Looks for the layout of a call that is being judged, at level 2 or 3, and drafts what holds it. What cannot be found
    /// is told when it starts. Nothing is made where anybody works, and nothing at all for the first command of a session,
    /// which has no folder for temporary files yet. Waits for the disk.
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

    /// What a call is held by, once, if it was found a moment ago.
    pub(in crate::tools::shell) fn take(
        &self,
        context: &ToolContext,
        call: CallId,
        choice: Choice,
    ) -> Option<Draft> {
        self.find(&Of::new(context, call, choice), Instant::now())
    }

    /// One that remembers the same places.
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
