//! Layouts that were found a moment ago. To find one takes a hundred looks at the disk, and calls in a row
//! find the same.
//!
//! A command is held by what there was when it began, however long it runs. So a layout that is a little
//! older than the command changes nothing but the moment.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::layout::Layout;
use crate::tools::context::Context;
use crate::types::ids::SessionId;

/// How old a layout may be that is used again.
const LIFE: Duration = Duration::from_millis(250);
/// So many are kept at most, the newest.
const MOST: usize = 16;

/// The newest layouts of one configuration.
#[derive(Debug, Default)]
pub(in crate::tools) struct Recent(Mutex<Vec<Known>>);

#[derive(Debug)]
struct Known {
    of: Of,
    /// Before it was looked for.
    at: Instant,
    layout: Arc<Layout>,
}

/// What a layout depends on, beside the configuration and the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Of {
    session: SessionId,
    workspace: PathBuf,
    additional: Vec<PathBuf>,
    network: bool,
}

impl Of {
    fn new(context: &Context, network: bool) -> Self {
        let scene = &context.scene;
        Self {
            session: scene.session_id,
            workspace: scene.workspace.clone(),
            additional: scene.additional.clone(),
            network,
        }
    }
}

impl Recent {
    /// The layout of a call, if it was found within the last moments.
    pub(in crate::tools::shell) fn layout(&self, context: &Context, network: bool) -> Option<Arc<Layout>> {
        self.find(&Of::new(context, network), Instant::now())
    }

    /// The same; looks for it otherwise. Waits for the disk.
    ///
    /// # Errors
    /// See [`Layout::of`].
    pub(in crate::tools::shell) fn layout_or_look(
        &self,
        context: &Context,
        network: bool,
    ) -> std::io::Result<Arc<Layout>> {
        let (of, at) = (Of::new(context, network), Instant::now());
        if let Some(layout) = self.find(&of, at) {
            return Ok(layout);
        }
        let layout = Arc::new(Layout::of(context, network)?);
        self.keep(of, at, Arc::clone(&layout));
        Ok(layout)
    }

    fn find(&self, of: &Of, now: Instant) -> Option<Arc<Layout>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &&Known| known.of == *of && now.saturating_duration_since(known.at) < LIFE;
        all.iter().find(is_it).map(|known| Arc::clone(&known.layout))
    }

    fn keep(&self, of: Of, at: Instant, layout: Arc<Layout>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.of != of && at.saturating_duration_since(known.at) < LIFE);
        all.truncate(MOST - 1);
        all.insert(0, Known { of, at, layout });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ids::{Mint, Seed};

    #[test]
    fn a_layout_is_used_again_by_the_same_session_for_a_moment() {
        let recent = Recent::default();
        let mut mint = Mint::new(0, Seed(1));
        let of =
            Of { session: mint.session(), workspace: "/w".into(), additional: Vec::new(), network: false };
        let (then, layout) = (Instant::now(), Arc::new(Layout::default()));
        recent.keep(of.clone(), then, Arc::clone(&layout));
        let found = |of: &Of, after: Duration| recent.find(of, then + after).is_some();
        assert!(found(&of, LIFE / 2));
        assert!(!found(&of, LIFE));
        for other in [
            Of { session: mint.session(), ..of.clone() },
            Of { workspace: "/other".into(), ..of.clone() },
            Of { additional: vec!["/a".into()], ..of.clone() },
            Of { network: true, ..of.clone() },
        ] {
            assert!(!found(&other, Duration::ZERO), "{other:?}");
            recent.keep(other, then, Arc::clone(&layout));
        }
        assert!(found(&of, LIFE / 2));
        for _ in 0..2 * MOST {
            recent.keep(Of { session: mint.session(), ..of.clone() }, then, Arc::clone(&layout));
        }
        assert_eq!(recent.0.lock().expect("all").len(), MOST);
        recent.keep(of, then + LIFE, layout);
        assert_eq!(recent.0.lock().expect("all").len(), 1, "the others are too old");
    }
}
