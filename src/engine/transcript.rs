//! The conversation of a session, cheap to copy and cheap to add to.
//!
//! A decision works on a copy of the state and adds to it. One vector behind an `Arc` would be copied whole with each
//! message that is added, so only the newest few stand in a part that is copied.

use std::iter::Chain;
use std::slice::Iter;
use std::sync::Arc;

use crate::types::message::Message;

/// Messages that are copied with the state; more of them move to the others.
const NEWEST: usize = 32;

/// Messages in order, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Transcript {
    settled: Arc<Vec<Arc<Message>>>,
    newest: Vec<Arc<Message>>,
}

impl Transcript {
    pub fn iter(&self) -> Chain<Iter<'_, Arc<Message>>, Iter<'_, Arc<Message>>> {
        self.settled.iter().chain(&self.newest)
    }

    pub fn len(&self) -> usize {
        self.settled.len() + self.newest.len()
    }

    pub fn last(&self) -> Option<&Arc<Message>> {
        self.newest.last().or_else(|| self.settled.last())
    }

    pub fn push(&mut self, message: Message) {
        if self.newest.len() == NEWEST {
            Arc::make_mut(&mut self.settled).append(&mut self.newest);
        }
        self.newest.push(Arc::new(message));
    }

    /// Keeps the oldest `count`.
    pub fn truncate(&mut self, count: usize) {
        self.newest.truncate(count.saturating_sub(self.settled.len()));
        if count < self.settled.len() {
            Arc::make_mut(&mut self.settled).truncate(count);
        }
    }

    /// Changes messages where they stand.
    pub fn change(&mut self, mut how: impl FnMut(&mut [Arc<Message>])) {
        how(Arc::<Vec<_>>::make_mut(&mut self.settled));
        how(&mut self.newest);
    }
}

impl PartialEq for Transcript {
    /// How it is kept does not count.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(u8),
        Truncate(usize),
        Change(u8),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            8 => any::<u8>().prop_map(Step::Push),
            1 => (0..90usize).prop_map(Step::Truncate),
            1 => any::<u8>().prop_map(Step::Change),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// It is a plain list, and a copy stays as it was.
        #[test]
        fn it_holds_what_a_plain_list_would(steps in steps()) {
            let (mut transcript, mut plain) = (Transcript::default(), Vec::<Arc<Message>>::new());
            let mut copies = Vec::new();
            for step in steps {
                copies.push((transcript.clone(), plain.clone()));
                match step {
                    Step::Push(n) => {
                        transcript.push(Message::user(n.to_string()));
                        plain.push(Arc::new(Message::user(n.to_string())));
                    }
                    Step::Truncate(count) => {
                        transcript.truncate(count);
                        plain.truncate(count);
                    }
                    Step::Change(n) => {
                        let how = |part: &mut [Arc<Message>]| {
                            part.iter_mut().for_each(|it| *it = Arc::new(Message::user(n.to_string())));
                        };
                        transcript.change(how);
                        how(&mut plain);
                    }
                }
                prop_assert_eq!(transcript.len(), plain.len());
                prop_assert_eq!(transcript.last(), plain.last());
                prop_assert!(transcript.iter().eq(plain.iter()));
            }
            for (transcript, plain) in copies {
                prop_assert!(transcript.iter().eq(plain.iter()), "a copy was changed");
            }
        }
    }
}
