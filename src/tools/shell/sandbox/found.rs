//! Layouts that were found when their calls were judged, for calls that start at once: to find one takes a
//! hundred looks at the disk, and while an answer is being written there is time for it.
//!
//! A command is held by what there was when it began, however long it runs. A layout that is a little older
//! than the command moves that moment and nothing else.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::layout::Layout;
use super::temp;
use crate::tools::context::Context;
use crate::types::ids::CallId;

/// How old a layout may be that a command is held by.
const LIFE: Duration = Duration::from_millis(250);
/// So many are kept at most, the newest.
const MOST: usize = 16;

/// The newest layouts of calls that have not started.
#[derive(Debug, Default)]
pub(in crate::tools) struct Found(Mutex<Vec<Kept>>);

#[derive(Debug)]
struct Kept {
    of: Of,
    /// Before it was looked for.
    at: Instant,
    layout: Arc<Layout>,
}

/// What a layout was found for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Of {
    call: CallId,
    workspace: PathBuf,
    additional: Vec<PathBuf>,
    network: bool,
}

impl Of {
    fn new(context: &Context, call: CallId, network: bool) -> Self {
        let (workspace, additional) = (context.scene.workspace.clone(), context.scene.additional.clone());
        Self { call, workspace, additional, network }
    }
}

impl Found {
    /// Looks for the layout of a call that is being judged. What cannot be found is told when it starts. Nothing is
    /// made: the first command of a session finds no folder for temporary files, and no layout here. Waits for the
    /// disk.
    pub(in crate::tools::shell) fn look(&self, context: &Context, call: CallId, network: bool) {
        let at = Instant::now();
        if !temp::has_folder(&context.settings.sandbox.temp, context.scene.session_id) {
            return;
        }
        if let Ok(layout) = Layout::of(context, network) {
            self.keep(Of::new(context, call, network), at, Arc::new(layout));
        }
    }

    /// The layout of a call, once, if it was found a moment ago.
    pub(in crate::tools::shell) fn take(
        &self,
        context: &Context,
        call: CallId,
        network: bool,
    ) -> Option<Arc<Layout>> {
        self.find(&Of::new(context, call, network), Instant::now())
    }

    fn find(&self, of: &Of, now: Instant) -> Option<Arc<Layout>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|kept| kept.of == *of)?;
        let kept = all.remove(at);
        (now.saturating_duration_since(kept.at) < LIFE).then_some(kept.layout)
    }

    fn keep(&self, of: Of, at: Instant, layout: Arc<Layout>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|kept| kept.of.call != of.call && at.saturating_duration_since(kept.at) < LIFE);
        all.truncate(MOST - 1);
        all.insert(0, Kept { of, at, layout });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ids::{Mint, Seed};

    #[test]
    fn a_layout_holds_its_own_call_once_and_for_a_moment() {
        let found = Found::default();
        let mut mint = Mint::new(0, Seed(1));
        let of = Of { call: mint.call(), workspace: "/w".into(), additional: Vec::new(), network: false };
        let (then, layout) = (Instant::now(), Arc::new(Layout::default()));
        let keep = |of: &Of| found.keep(of.clone(), then, Arc::clone(&layout));
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
            Of { network: true, ..of.clone() },
        ] {
            keep(&of);
            assert!(!is_found(&other, Duration::ZERO), "{other:?}");
        }
        for _ in 0..2 * MOST {
            keep(&Of { call: mint.call(), ..of.clone() });
        }
        assert_eq!(found.0.lock().expect("all").len(), MOST);
        found.keep(of, then + LIFE, layout);
        assert_eq!(found.0.lock().expect("all").len(), 1, "the others are too old");
    }
}
