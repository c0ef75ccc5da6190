//! The open workspaces of the sessions that use the tools, each kept since its first call.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::sync::lock;
use crate::tools::context::SessionContext;
use crate::tools::fs::jail::Jail;
use crate::tools::sensitivity::SensitivePaths;
use crate::types::ids::SessionId;

/// Maximal number of open workspaces; the least recently used one is closed first.
const MOST: usize = 128;

/// Open workspaces by session.
#[derive(Debug)]
pub(in crate::tools) struct Jails {
    places: Arc<SensitivePaths>,
    /// Most recently used last.
    held: Mutex<Vec<(SessionId, Arc<Jail>)>>,
}

impl Jails {
    pub(in crate::tools) fn new(places: Arc<SensitivePaths>) -> Self {
        Self { places, held: Mutex::new(Vec::new()) }
    }

    /// The jail of a session. Blocks on the disk.
    pub(in crate::tools) fn of(&self, session_context: &SessionContext) -> Arc<Jail> {
        let mut held = lock(&self.held);
        let known = held.iter().position(|(session_id, _)| *session_id == session_context.session_id);
        let jail = known.map(|at| held.remove(at).1).filter(|jail| is_usable(jail, session_context));
        let jail = jail.unwrap_or_else(|| {
            let roots: Vec<PathBuf> = session_context.roots().cloned().collect();
            Arc::new(Jail::hold(&roots, Arc::clone(&self.places)))
        });
        held.push((session_context.session_id, Arc::clone(&jail)));
        if held.len() > MOST {
            held.remove(0);
        }
        jail
    }
}

fn is_usable(jail: &Jail, session_context: &SessionContext) -> bool {
    jail.is_of(session_context.roots()) && jail.is_current()
}
